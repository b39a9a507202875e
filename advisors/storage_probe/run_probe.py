"""Runs a probe from beginning to end, within its bounds."""

from __future__ import annotations

import os
import random
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import psutil

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.daemon import cgroup
from ...profiler.store.run.run import Run
from .convert import Samples, convert
from .decoders import Decoder, decoder_for
from .formats import FORMATS
from .layout import Format, Layout
from .probe_model import StorageProbe
from .results import middle, trial_of
from .scratch import file_system, place, room, scratch
from .source import Data, File, find_data
from .timing import PLANNED_ROUNDS, Timed, time_layouts
from .verdict import sentences

# The walk takes this part of the time, copying this part of the rest, and timing ends after this
# part of all, as removing the copies takes time too.
WALK_SHARE, COPY_SHARE, TIMING_UNTIL = 0.1, 0.4, 0.9
# Layouts take more than the samples' bytes: pages, headers, indices.
OVERHEAD = 1.5
OVERHEAD_A_FILE = 8192
# Fewer rounds show too little of the spread, fewer samples too little of a data set.
FEW_ROUNDS, FEW_SAMPLES = 3, 32


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
    file system of the data, which is always removed. `step` is called after choosing, copying and
    timing.

    Raises UsageError (no files, no room, an invalid bound), RunNotFound and RunUnreadable.
    """
    bounds.check()
    begun = time.monotonic()
    until = begun + TIMING_UNTIL * bounds.max_seconds
    data, memory = find_data(source, WALK_SHARE * bounds.max_seconds), memory_bytes()
    if memory is not None:  # samples are held in memory while they are converted
        bounds = bounds._replace(max_bytes=min(bounds.max_bytes, memory // 8))
    decoder, why_not = decoder_for(data.suffix)
    formats = [each for each in FORMATS if each.form == "encoded" or decoder is not None]
    chosen, bounds, parent, notes = _sample(data, bounds, temp, seed, formats)
    notes += filter(None, [why_not])
    fits = data.bytes <= (memory or 0)
    with scratch(parent) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of decoders and libraries
        layouts = [Layout(each, folder / each.name, fits) for each in formats]
        now = time.monotonic()
        samples = convert(
            chosen, layouts, decoder, bounds.max_bytes, now + COPY_SHARE * (until - now)
        )
        timed = time_layouts(layouts, decoder, len(samples.decode_s), seed, until)
        found = _result(data, layouts, timed, decoder, memory)
        return replace(
            found,
            seconds=time.monotonic() - begun,
            notes=(*notes, *_notes(samples, timed, found)),
            skipped=dict(samples.skipped),
        )


def _result(
    data: Data,
    layouts: Sequence[Layout],
    timed: Timed,
    decoder: Decoder | None,
    memory: int | None,
) -> StorageProbe:
    files, decode_s = layouts[0], middle(timed.decode_s)
    found = tuple(trial_of(each, timed, data, memory) for each in layouts)
    cold, warm = (_share(middle(each), decode_s) for each in (files.cold_s, files.warm_s))
    cold_reason = timed.cold_reason if middle(files.cold_s) is None else None
    if not timed.rounds:
        cold_reason = cold_reason or "time was over before it could be measured"
    return StorageProbe(
        source=data.shown,
        suffix=data.suffix,
        whole_files=data.count,
        whole_bytes=data.bytes,
        whole_is_lower_bound=data.partial,
        samples=files.count,
        sample_bytes=files.source_bytes,
        decoder=decoder.name if decoder is not None else None,
        decode_us=decode_s * 1e6 if decode_s is not None else None,
        reading_warm_share=warm,
        reading_cold_share=cold,
        cold_reason=cold_reason,
        memory_bytes=memory,
        file_system=file_system(files.folder),
        rounds=timed.rounds,
        seconds=0.0,  # known at the end
        layouts=found,
        verdict=tuple(sentences(found, decoder, warm, cold, memory)),
    )


def _sample(
    data: Data, bounds: Bounds, temp: Path | None, seed: int, formats: Sequence[Format]
) -> tuple[list[File], Bounds, Path, list[str]]:
    """The sample, its bounds, the folder for the copies, and notes. With little room, bounds and
    sample are made smaller."""
    chosen = choose(data, bounds, seed)
    if not chosen:
        what = f"every {data.suffix or 'file'} of {clean(data.shown, 200)}"
        raise UsageError(f"{what} is larger than the bound on bytes: raise --bytes")
    needed = _needed(chosen, bounds, formats)
    parent, notes = place(data.folders, temp, needed)
    where, left = clean(parent, 200), room(parent)
    if needed > left:
        notes.append(f"{where} has little room: the sample was made smaller")
    while _needed(chosen, bounds, formats) > left:
        bounds = bounds._replace(max_bytes=bounds.max_bytes // 2)
        chosen = choose(data, bounds, seed)
        if not chosen:
            raise UsageError(
                f"there is no room for a probe in {where}: name a roomier folder with --temp"
            )
    too_large = sum(size > bounds.max_bytes for _, size in data.files)
    if too_large:
        notes.append(f"{too_large:,} files larger than the bound on bytes were left out")
    return chosen, bounds, parent, [*notes, *data.notes]


def choose(data: Data, bounds: Bounds, seed: int) -> list[File]:
    """Files in random order within the bounds: a part of it is a fair sample too if copying has to
    stop."""
    order = [file for file in data.files if file[1] <= bounds.max_bytes]
    random.Random(seed).shuffle(order)
    total = accumulate(size for _, size in order)
    number = sum(size <= bounds.max_bytes for size in total)
    return order[: min(number, bounds.max_files)]


def _needed(chosen: Sequence[File], bounds: Bounds, formats: Sequence[Format]) -> int:
    """Bytes that all layouts may take."""
    sample = sum(size for _, size in chosen)
    data = sum(sample if each.form == "encoded" else bounds.max_bytes for each in formats)
    return round(OVERHEAD * data + len(formats) * OVERHEAD_A_FILE * len(chosen))


def _notes(samples: Samples, timed: Timed, found: StorageProbe) -> Iterator[str]:
    if samples.stopped:
        yield f"the sample is smaller than asked for: {samples.stopped}"
    if timed.rounds and found.cold_reason and any(e.fits_memory is False for e in found.layouts):
        yield (
            "not every layout of the whole data set fits in memory, and cold reading could not be "
            "measured: factors are for warm reading, which later epochs may not have"
        )
    if 0 < timed.rounds < FEW_ROUNDS:
        yield f"only {timed.rounds} of {PLANNED_ROUNDS} rounds could be timed: raise --seconds"
    if found.samples < FEW_SAMPLES:
        yield f"{found.samples:,} samples say little about a whole data set"
    if timed.rounds and timed.cold_reason is None:
        yield (
            "cold: the files' pages were dropped, but names and inodes stayed in memory, so "
            "opening many files for the first time costs more than this shows"
        )


def _share(read_s: float | None, decode_s: float | None) -> float | None:
    return None if read_s is None or decode_s is None else read_s / (read_s + decode_s)


def memory_bytes() -> int | None:
    """The most that the page cache could hold: the available memory, within the container's
    limit."""
    try:
        available = psutil.virtual_memory().available
    except (OSError, RuntimeError):
        return None
    limit = cgroup.find().mem_limit_bytes
    return available if limit is None else min(available, limit)


class Bounds(NamedTuple):
    """The most bytes of each layout, files, and seconds in all."""

    max_bytes: int
    max_files: int
    max_seconds: float

    def check(self) -> None:
        """Raises UsageError."""
        if not (self.max_bytes > 0 < self.max_files and 0 < self.max_seconds < float("inf")):
            raise UsageError("the probe needs a number of bytes, files and seconds above 0")


def read_size(text: str) -> int:
    """Bytes from "64MB", "1.5 GB", "2GiB" or "4096". Raises UsageError."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGT]?)(i?)[bB]?\s*", text, re.ASCII)
    if match is None:
        raise UsageError(f"{clean(text, 40)!r} is not a size: write it as 64MB or 1.5GB")
    unit: int = (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    return round(float(match[1]) * unit)
