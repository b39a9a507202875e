"""Runs a probe from beginning to end, within its bounds."""

import math
import os
import random
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import psutil

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.base.mounts import Mounts
from ...profiler.daemon import cgroup
from ...profiler.store.run.run import Run
from ..schema.report_model import Range
from .decoders import Decoder, decoder_for
from .layouts import FORMATS, Layout
from .page_cache import make_cold
from .probe_model import LayoutTrial, StorageProbe
from .scratch import place, room, scratch
from .source import Data, File, find_data
from .verdict import sentences

# The parts of the time after which the walk, reading and decoding, converting, and timing end: the
# copies must be removed too.
WALKED, READ, CONVERTED, TIMED = 0.1, 0.25, 0.5, 0.9
# Layouts take more than the samples' bytes: pages, headers, indices.
OVERHEAD = 1.5
# There are fewer rounds only if time ends.
ROUNDS = 5
# A pass reads at least this many samples. Fewer of all say too little of a data set.
MIN_PASS_SAMPLES, FEW_SAMPLES = 8, 32


class Bounds(NamedTuple):
    """The most bytes of each layout, files, and seconds in all."""

    max_bytes: int
    max_files: int
    max_seconds: float


@dataclass
class Samples:
    """What was read, of the files at the beginning also decoded (as far as the bound on bytes
    allows), and the seconds that each decoding took."""

    encoded: list[bytes] = field(default_factory=list)
    decoded: list[Any] = field(default_factory=list)
    decode_s: list[float] = field(default_factory=list)
    skipped: int = 0


def probe_storage(
    source: Run | str | os.PathLike[str],
    bounds: Bounds,
    *,
    temp: Path | None = None,
    seed: int = 0,
) -> StorageProbe:
    """Time the layouts on a sample of the files of `source`: a folder of data, or a run (value, id,
    path, "latest").

    The `bounds` are for each layout, the sample, and the probe. The same `seed` takes the same
    sample. The data is only read. The copies are in a new folder below `temp`, by default on the
    file system of the data, which is always removed.

    Raises UsageError (no files, no room), RunNotFound and RunUnreadable.
    """
    begun, seconds = time.monotonic(), bounds.max_seconds
    data, memory = find_data(source, WALKED * seconds), memory_bytes()
    name, decoder, why_not = decoder_for(data.suffix)
    formats = [each for each in FORMATS if each.form == "encoded" or decoder is not None]
    parent = place(data.folders, temp)
    # Samples are held in memory while they are converted.
    usable = min(memory // 8, round(room(parent) / len(formats) / OVERHEAD))
    bounds = bounds._replace(max_bytes=min(bounds.max_bytes, usable))
    chosen = choose(data.files, bounds, seed)
    if not chosen:
        raise UsageError(
            f"no {data.suffix or 'file'} of {clean(data.shown, 200)} is within the bound of "
            f"{bounds.max_bytes:,} bytes: raise --bytes, or name a roomier folder with --temp"
        )
    with scratch(parent) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of decoders and libraries
        layouts = [Layout(each, folder / each.name) for each in formats]
        samples = read_samples(chosen, decoder, bounds.max_bytes, begun + READ * seconds)
        _convert(layouts, samples, data, begun + CONVERTED * seconds)
        cold_reason = time_layouts(
            [each for each in layouts if each.reason is None], seed, begun + TIMED * seconds
        )
        found = _result(data, samples, layouts, memory, cold_reason)
        notes = _notes(data, layouts[0], samples.skipped, parent)
        return replace(
            found,
            decoder=name,
            seconds=time.monotonic() - begun,
            notes=(*filter(None, [why_not]), *notes),
        )


def _result(
    data: Data, samples: Samples, layouts: Sequence[Layout], memory: int, cold_reason: str | None
) -> StorageProbe:
    files, decode_s = layouts[0], fmean(samples.decode_s) if samples.decode_s else None
    found = tuple(trial_of(each, files, decode_s or 0.0, memory) for each in layouts)
    mount = Mounts().of(os.path.realpath(files.folder))
    warm, cold = (_share(each, decode_s) for each in (files.warm_s, files.cold_s))
    return StorageProbe(
        source=data.shown,
        suffix=data.suffix,
        whole_files=len(data.files),
        whole_bytes=data.bytes,
        whole_is_lower_bound=data.partial,
        samples=files.count,
        sample_bytes=sum(map(len, samples.encoded[: files.count])),
        decode_us=decode_s * 1e6 if decode_s is not None else None,
        reading_warm_share=warm,
        reading_cold_share=cold,
        cold_reason=cold_reason,
        memory_bytes=memory,
        file_system=mount and clean(mount.type, 40),
        rounds=len(files.warm_s),
        layouts=found,
        verdict=tuple(sentences(found, warm, cold, memory)),
    )


def _notes(data: Data, files: Layout, skipped: int, parent: Path) -> Iterator[str]:
    if data.folders[0].stat().st_dev != parent.stat().st_dev:
        yield (
            "the copies were on another file system than the data: the rates are of that one; "
            "--temp names a folder to use"
        )
    if skipped:
        yield f"{skipped:,} files were left out: they cannot be read or decoded"
    if files.count < FEW_SAMPLES:
        yield f"{files.count:,} samples say little about a whole data set"
    if files.cold_s:
        yield (
            "cold: the files' pages were dropped, but names and inodes stayed in memory, so "
            "opening many files for the first time costs more than this shows"
        )


def choose(files: Sequence[File], bounds: Bounds, seed: int) -> list[File]:
    """Files in random order within the bounds: a part of it is a fair sample too if reading has to
    stop."""
    order = [file for file in files if file[1] <= bounds.max_bytes]
    random.Random(seed).shuffle(order)
    total = accumulate(size for _, size in order)
    number = sum(size <= bounds.max_bytes for size in total)
    return order[: min(number, bounds.max_files)]


def read_samples(
    files: Sequence[File], decoder: Decoder | None, max_bytes: int, deadline: float
) -> Samples:
    """The samples of these files, until the deadline (one at least). What cannot be read or decoded
    is counted. Raises UsageError if that is all."""
    found, left = Samples(), max_bytes
    why: Exception | None = None
    for path, _ in files:
        if found.encoded and time.monotonic() > deadline:
            break
        try:
            data = Path(path).read_bytes()
            if decoder is not None and left >= 0:
                begun = time.monotonic()
                sample = decoder(data)
                found.decode_s.append(time.monotonic() - begun)
                left -= getattr(sample, "nbytes", 0)
                if left >= 0:
                    found.decoded.append(sample)
        except Exception as error:  # each library has its own
            found.skipped, why = found.skipped + 1, error
            continue
        found.encoded.append(data)
    if not found.encoded:
        kind = type(why).__name__
        raise UsageError(
            f"no file could be part of the sample: {found.skipped:,} of them cannot be read or "
            f"decoded ({kind})"
        )
    return found


def _convert(layouts: Sequence[Layout], samples: Samples, data: Data, deadline: float) -> None:
    """Write the samples into all layouts. One that cannot hold them gets its reason. Raises
    UsageError where the files themselves, the first layout, cannot be copied."""
    share_s = max(0.0, deadline - time.monotonic()) / len(layouts)
    for layout in layouts:
        encoded = layout.format.form == "encoded"
        layout.fill(samples.encoded if encoded else samples.decoded, share_s)
        scale = data.bytes / max(1, sum(map(len, samples.encoded[: layout.count])))
        layout.whole_bytes = scale * layout.disk_bytes()
    if layouts[0].reason is not None:
        raise UsageError(f"the files cannot be copied: {layouts[0].reason}")


def time_layouts(layouts: Sequence[Layout], seed: int, deadline: float) -> str | None:
    """Rounds of two passes over each layout, one at least: nothing is in the page cache, then all
    of it is. Other load on the machine affects all alike, as ratios are taken within a round.
    Returns why nothing could be made cold."""
    rng = random.Random(seed)
    why = None
    for number in range(ROUNDS):
        begun = time.monotonic()
        share_s = (deadline - begun) / (ROUNDS - number) / (2 * len(layouts))
        if number and share_s < 0:
            break
        for layout in layouts:
            order = list(range(layout.count))
            if layout.format.order == "shuffled":
                rng.shuffle(order)
            why = why or make_cold(layout.files)
            cold_s, read = _pass(layout, order, share_s)
            layout.cold_s.append(cold_s)
            layout.warm_s.append(_pass(layout, order[:read], math.inf)[0])
    for layout in layouts if why is not None else ():
        layout.cold_s.clear()
    return why


def _pass(layout: Layout, order: Sequence[int], share_s: float) -> tuple[float, int]:
    """Seconds a sample, and how many were read in the share of time."""
    begun, number = time.monotonic(), 0
    for number, _ in enumerate(layout.format.read(layout, order), 1):
        if number >= MIN_PASS_SAMPLES and time.monotonic() > begun + share_s:
            break
    return (time.monotonic() - begun) / number, number


def trial_of(layout: Layout, files: Layout, decode_s: float, memory: int) -> LayoutTrial:
    """The result of a layout, compared with the files as they are; `decode_s` is for a sample."""
    kind = layout.format
    trial = LayoutTrial(kind.name, kind.label, kind.form, kind.order, layout.reason)
    if layout.reason is not None:
        return trial
    more_s = decode_s if kind.form == "encoded" else 0.0
    trial = replace(
        trial,
        samples=layout.count,
        whole_bytes=layout.whole_bytes,
        fits_memory=layout.whole_bytes <= memory,
        cold=1 / (median(layout.cold_s) + more_s) if layout.cold_s else None,
        warm=1 / (median(layout.warm_s) + more_s),
    )
    if layout is files:
        return trial
    before = [each + decode_s for each in _steady(files, memory)]
    after = [each + more_s for each in _steady(layout, memory)]
    ratios = [b / a for b, a in zip(before, after, strict=True)]
    return replace(trial, gain=Range(min(ratios), median(ratios), max(ratios)))


def _steady(layout: Layout, memory: int) -> list[float]:
    """Seconds a sample of any epoch but the first, by round."""
    warm = layout.whole_bytes <= memory or not layout.cold_s
    return layout.warm_s if warm else layout.cold_s


def _share(read_s: Sequence[float], decode_s: float | None) -> float | None:
    if not read_s or decode_s is None:
        return None
    return median(read_s) / (median(read_s) + decode_s)


def memory_bytes() -> int:
    """The most that the page cache could hold: the available memory, within the container's
    limit."""
    available = psutil.virtual_memory().available
    return min(available, cgroup.find().mem_limit_bytes or available)


def read_size(text: str) -> int:
    """Bytes from "64MB", "1.5 GB", "2GiB" or "4096". Raises UsageError."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGT]?)(i?)[bB]?\s*", text, re.ASCII)
    if match is None:
        raise UsageError(f"{clean(text, 40)!r} is not a size: write it as 64MB or 1.5GB")
    unit: int = (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    return round(float(match[1]) * unit)
