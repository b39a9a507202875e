"""Runs a probe from beginning to end, within its bounds."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.daemon import cgroup
from ...profiler.store.run.run import Run
from .bounds import Bounds
from .convert import Converted, convert
from .decoded import DecodedHdf5, DecodedLmdb, MappedArray
from .decoders import Decoder, decoder_for
from .encoded import Files, Hdf5, Lmdb
from .layout import Layout
from .probe_model import StorageProbe
from .results import middle, trials
from .sample import choose
from .scratch import file_system, place, room, scratch
from .source import Data, find_data
from .tables import Arrow, Parquet
from .tars import Shards, Tar
from .timing import PLANNED_ROUNDS, Timed, time_layouts
from .verdict import sentences

LAYOUTS: tuple[type[Layout], ...] = (
    Files,
    Lmdb,
    Hdf5,
    Arrow,
    Parquet,
    Tar,
    Shards,
    MappedArray,
    DecodedLmdb,
    DecodedHdf5,
)

# How the time is divided: the walk has this part of it, copying this part of what is left once the
# libraries are there, and the last pass ends when this part of all is over, since removing the
# copies takes time too.
WALK_SHARE, COPY_SHARE, TIMING_UNTIL = 0.1, 0.4, 0.9

# Below so many seconds libraries that take long to import are left out.
SHORT_S = 15.0

# Layouts add to the samples' own bytes: rounding up to pages, headers, indices.
OVERHEAD = 1.5
OVERHEAD_A_FILE = 8192

# Fewer rounds than this show little of what chance does.
FEW_ROUNDS = 3

# Fewer samples than this say little about a data set.
FEW_SAMPLES = 32


def run_probe(
    source: Run | str | os.PathLike[str],
    bounds: Bounds,
    temp: Path | None,
    seed: int,
    step: Callable[[], None],
) -> StorageProbe:
    """See `probe_storage`."""
    begun = time.monotonic()
    until = begun + TIMING_UNTIL * bounds.max_seconds
    data = find_data(source, WALK_SHARE * bounds.max_seconds)
    chosen, too_large = choose(data, bounds, seed)
    if not chosen:
        what = f"every {data.suffix or 'file'} of {clean(data.shown, 200)}"
        raise UsageError(f"{what} is larger than the bound on bytes: raise --bytes")
    decoder, why_not = decoder_for(data.suffix)
    classes = [each for each in LAYOUTS if each.form == "encoded" or decoder is not None]
    sizes = dict(data.files)
    bounds, chosen, parent, notes = _room(data, chosen, sizes, bounds, temp, classes)
    notes += [*data.notes, *([why_not] if why_not else [])]
    if too_large:
        notes.append(f"{too_large:,} files larger than the bound on bytes were passed over")
    step()
    memory = memory_bytes()
    with scratch(parent) as folder, _quiet():
        layouts = [
            each(folder, bounds.max_bytes, len(chosen), data.bytes <= (memory or 0))
            for each in classes
        ]
        for layout in layouts:
            long = layout.slow_import and bounds.max_seconds < SHORT_S
            layout.reason = (
                "its library takes too long to import for so short a probe"
                if long
                else layout.load()
            )
        now = time.monotonic()
        converted = convert(
            chosen, layouts, decoder, bounds.max_bytes, now + COPY_SHARE * (until - now)
        )
        if not converted.count:
            raise UsageError(_nothing(converted))
        step()
        timed = time_layouts(layouts, converted, decoder, seed, until)
        step()
        return _result(data, layouts, converted, timed, decoder, folder, notes, begun, memory)


def _room(
    data: Data,
    chosen: list[str],
    sizes: dict[str, int],
    bounds: Bounds,
    temp: Path | None,
    classes: list[type[Layout]],
) -> tuple[Bounds, list[str], Path, list[str]]:
    """Bounds, sample, place and notes; the sample is made smaller where there is little room.
    Raises UsageError."""
    encoded = sum(each.form == "encoded" for each in classes)
    decoded = len(classes) - encoded

    def needed(paths: list[str], max_bytes: int) -> int:
        sample = sum(sizes[path] for path in paths)
        return round(
            OVERHEAD * (encoded * sample + decoded * max_bytes)
            + len(classes) * OVERHEAD_A_FILE * len(paths)
        )

    parent, notes = place(data.folders, temp, needed(chosen, bounds.max_bytes))
    left = room(parent)
    if needed(chosen, bounds.max_bytes) <= left:
        return bounds, chosen, parent, notes
    # Decoded samples are the greater part of it mostly: both shrink together until they fit.
    max_bytes = bounds.max_bytes
    while needed(chosen, max_bytes) > left:
        max_bytes //= 2
        total, kept = 0, []
        for path in chosen:
            if (total := total + sizes[path]) > max_bytes:
                break
            kept.append(path)
        if not kept:
            raise UsageError(
                f"there is no room for a probe in {clean(parent, 200)}: name a roomier folder with "
                "--temp"
            )
        chosen = kept
    notes.append(f"{clean(parent, 200)} has little room: the sample was made smaller")
    return Bounds(max_bytes, bounds.max_files, bounds.max_seconds), chosen, parent, notes


def _nothing(converted: Converted) -> str:
    if converted.skipped:
        why, number = converted.skipped.most_common(1)[0]
        return f"no file could be part of the sample: {clean(why, 200)}, for {number:,} of them"
    return "not one file could be copied in the time: raise --seconds"


def _result(
    data: Data,
    layouts: list[Layout],
    converted: Converted,
    timed: Timed,
    decoder: Decoder | None,
    folder: Path,
    notes: list[str],
    begun: float,
    memory: int | None,
) -> StorageProbe:
    if not timed.lanes or timed.lanes[0].layout is not layouts[0]:
        raise UsageError(
            f"the copies could not be read again: {layouts[0].reason or 'time was over'}"
        )
    found = trials(layouts, timed, data, memory)
    decode_s = middle(timed.decode_s)
    cold, warm = (
        _share(middle(each), decode_s) for each in (timed.lanes[0].cold_s, timed.lanes[0].warm_s)
    )
    cold_reason = (
        None
        if timed.lanes[0].cold_s and middle(timed.lanes[0].cold_s) is not None
        else timed.cold_reason
    )
    if converted.stopped:
        notes = [*notes, f"the sample is smaller than asked for: {converted.stopped}"]
    if (
        timed.rounds
        and cold_reason is not None
        and any(each.fits_memory is False for each in found)
    ):
        notes = [
            *notes,
            "not every layout of the whole data set fits in memory, and cold reading could not be "
            "measured: factors are those of warm reading, which later epochs may not have",
        ]
    if 0 < timed.rounds < FEW_ROUNDS:
        notes = [
            *notes,
            f"only {timed.rounds} of {PLANNED_ROUNDS} rounds could be timed: raise --seconds",
        ]
    if converted.count < FEW_SAMPLES:
        notes = [*notes, f"{converted.count:,} samples say little about a whole data set"]
    if timed.cold_reason is None and timed.rounds:
        notes = [
            *notes,
            "cold: the files' pages were dropped, but names and inodes stayed in memory, so "
            "opening many files for the first time costs more than this shows",
        ]
    return StorageProbe(
        source=data.shown,
        suffix=data.suffix,
        whole_files=data.count,
        whole_bytes=data.bytes,
        whole_is_lower_bound=data.partial,
        samples=converted.count,
        sample_bytes=converted.bytes,
        decoder=decoder.name if decoder is not None else None,
        decode_us=decode_s * 1e6 if decode_s is not None else None,
        reading_warm_share=warm,
        reading_cold_share=cold,
        cold_reason=cold_reason
        or (None if timed.rounds else "time was over before it could be measured"),
        memory_bytes=memory,
        file_system=file_system(folder),
        rounds=timed.rounds,
        seconds=time.monotonic() - begun,
        layouts=found,
        verdict=tuple(sentences(found, data, decoder, warm, cold, memory)),
        notes=tuple(notes),
        skipped=dict(converted.skipped),
    )


def _share(read_s: float | None, decode_s: float | None) -> float | None:
    return None if read_s is None or decode_s is None else read_s / (read_s + decode_s)


def memory_bytes() -> int | None:
    """The most that the page cache could hold of a data set now: what is available, within the
    container's limit."""
    try:
        available = psutil.virtual_memory().available
    except (OSError, RuntimeError):
        return None
    limit = cgroup.find().mem_limit_bytes
    return available if limit is None else min(available, limit)


@contextmanager
def _quiet() -> Iterator[None]:
    """What decoders and libraries warn of is not the user's concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
