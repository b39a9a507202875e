"""Runs a probe from beginning to end, within its bounds."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.daemon import cgroup
from ...profiler.store.run.run import Run
from .bounds import Bounds
from .convert import Converted, convert
from .decoders import Decoder, decoder_for
from .formats import FORMATS
from .layout import Format, Layout
from .probe_model import LayoutTrial, StorageProbe
from .results import middle, trials
from .sample import choose
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
    decoder, why_not = decoder_for(data.suffix)
    formats = [each for each in FORMATS if each.form == "encoded" or decoder is not None]
    bounds, chosen, parent, notes = _sample(data, bounds, temp, seed, formats)
    if why_not is not None:
        notes.append(why_not)
    step()
    memory = memory_bytes()
    fits = data.bytes <= (memory or 0)
    with scratch(parent) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of decoders and libraries
        layouts = [
            Layout(each, folder / each.name, bounds.max_bytes, len(chosen), fits)
            for each in formats
        ]
        for layout in layouts:
            layout.load()
        now = time.monotonic()
        converted = convert(
            [path for path, _ in chosen],
            layouts,
            decoder,
            bounds.max_bytes,
            now + COPY_SHARE * (until - now),
        )
        if not converted.count:
            why, number = (*converted.skipped.most_common(1), ("", 0))[0]
            if not number:
                raise UsageError("not one file could be copied in the time: raise --seconds")
            raise UsageError(
                f"no file could be part of the sample: {clean(why, 200)}, for {number:,} of them"
            )
        step()
        timed = time_layouts(layouts, converted, decoder, seed, until)
        step()
        if layouts[0] not in timed.layouts:
            raise UsageError(
                f"the copies could not be read again: {layouts[0].reason or 'time was over'}"
            )
        found = _result(data, layouts, converted, timed, decoder, memory)
        return replace(
            found,
            notes=(*notes, *found.notes),
            file_system=file_system(folder),
            seconds=time.monotonic() - begun,
        )


def _sample(
    data: Data, bounds: Bounds, temp: Path | None, seed: int, formats: Sequence[Format]
) -> tuple[Bounds, list[File], Path, list[str]]:
    """Bounds, sample, the folder for the copies, and notes. With little room, bounds and sample are
    made smaller."""
    chosen, too_large = choose(data, bounds, seed)
    if not chosen:
        what = f"every {data.suffix or 'file'} of {clean(data.shown, 200)}"
        raise UsageError(f"{what} is larger than the bound on bytes: raise --bytes")
    needed = _needed(chosen, bounds, formats)
    parent, notes = place(data.folders, temp, needed)
    where, left = clean(parent, 200), room(parent)
    if needed > left:
        notes.append(f"{where} has little room: the sample was made smaller")
    while _needed(chosen, bounds, formats) > left:
        bounds = replace(bounds, max_bytes=bounds.max_bytes // 2)
        chosen, too_large = choose(data, bounds, seed)
        if not chosen:
            raise UsageError(
                f"there is no room for a probe in {where}: name a roomier folder with --temp"
            )
    if too_large:
        notes.append(f"{too_large:,} files larger than the bound on bytes were left out")
    return bounds, chosen, parent, [*notes, *data.notes]


def _result(
    data: Data,
    layouts: Sequence[Layout],
    converted: Converted,
    timed: Timed,
    decoder: Decoder | None,
    memory: int | None,
) -> StorageProbe:
    found = trials(layouts, timed, data, memory)
    files, decode_s = timed.layouts[0], middle(timed.decode_s)
    cold, warm = (_share(middle(each), decode_s) for each in (files.cold_s, files.warm_s))
    cold_reason = timed.cold_reason if middle(files.cold_s) is None else None
    notes = tuple(_notes(converted, timed, found, cold_reason))
    if not timed.rounds:
        cold_reason = cold_reason or "time was over before it could be measured"
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
        cold_reason=cold_reason,
        memory_bytes=memory,
        file_system=None,  # these two are known at the end
        rounds=timed.rounds,
        seconds=0.0,
        layouts=found,
        verdict=tuple(sentences(found, decoder, warm, cold, memory)),
        notes=notes,
        skipped=dict(converted.skipped),
    )


def _needed(chosen: Sequence[File], bounds: Bounds, formats: Sequence[Format]) -> int:
    """Bytes that all layouts may take."""
    sample = sum(size for _, size in chosen)
    data = sum(sample if each.form == "encoded" else bounds.max_bytes for each in formats)
    return round(OVERHEAD * data + len(formats) * OVERHEAD_A_FILE * len(chosen))


def _notes(
    converted: Converted, timed: Timed, found: Sequence[LayoutTrial], cold_reason: str | None
) -> Iterator[str]:
    if converted.stopped:
        yield f"the sample is smaller than asked for: {converted.stopped}"
    if timed.rounds and cold_reason and any(each.fits_memory is False for each in found):
        yield (
            "not every layout of the whole data set fits in memory, and cold reading could not be "
            "measured: factors are for warm reading, which later epochs may not have"
        )
    if 0 < timed.rounds < FEW_ROUNDS:
        yield f"only {timed.rounds} of {PLANNED_ROUNDS} rounds could be timed: raise --seconds"
    if converted.count < FEW_SAMPLES:
        yield f"{converted.count:,} samples say little about a whole data set"
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
