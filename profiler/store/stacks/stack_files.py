"""Reading the sampler's `stacks-<n>.json`: each stack is given its stage. Nothing in them is
trusted."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ...base.errors import RunUnreadable
from ...base.metadata import clean
from ...base.tolerant import fitted, read_as
from .stack_samples import (
    FORMAT,
    MAX_FILES,
    WAITS,
    BurstFile,
    Frame,
    ProcessRow,
    Stack,
    StackCapture,
    StackRow,
    Wait,
)
from .stack_stages import Collate, Placed, collating_frames, place

MAX_BYTES = 4 << 20  # twice what the sampler writes
MAX_ITEMS = 20_000  # frames, or stacks

# The collate functions of loaders: (training process, number of the loader, function).
Collates = tuple[tuple[int, int, Collate], ...]
_NAME = re.compile(r"stacks-(\d{1,4})\.json")
# The extension where it is loaded from a checkout, and its source where debug information names
# that.
# The command was one file once: runs recorded then are still read.
_OWN_PARTS = ("profiler/", "tuning/", "cli/", "cli.py", "__main__.py")


def read_bursts(
    system: Path, collates: Collates
) -> tuple[tuple[StackCapture, ...], tuple[str, ...]]:
    """The bursts in a system directory in order, and notes on those that cannot be read. Never
    raises."""
    bursts, notes = [], []
    for path in files_of(system):
        try:
            bursts.append(read_burst(path, collates))
        except RunUnreadable as error:
            notes.append(f"{error}: left out")
    bursts.sort(key=lambda burst: (burst.t_begin_ns, burst.number))
    return tuple(bursts), tuple(notes)


def read_burst(path: Path, collates: Collates) -> StackCapture:
    """One burst. A file that has not changed is not read again. Raises RunUnreadable."""
    try:
        found = path.stat()
    except OSError as error:
        raise RunUnreadable(f"{clean(path)} cannot be read: {error.strerror}") from error
    return _read(path, (found.st_ino, found.st_mtime_ns, found.st_size), collates)


def answer_to(run_path: Path, nonce: str) -> StackCapture | None:
    """The burst of this run that answers a request; None where there is none (yet). Its stages are
    found without knowing the collate functions. Never raises."""
    for system in sorted(run_path.glob("system-*")):
        for path in reversed(files_of(system)):
            with suppress(RunUnreadable):
                if (burst := read_burst(path, ())).nonce == nonce:
                    return burst
    return None


def files_of(system: Path) -> list[Path]:
    """The bursts in a system directory, the first taken first. Never raises."""
    try:
        names = os.listdir(system)
    except OSError:
        return []
    numbered = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
    return [system / name for _, name in sorted(numbered)[:MAX_FILES]]


@lru_cache(maxsize=MAX_FILES)
def _read(path: Path, stamp: tuple[int, int, int], collates: Collates) -> StackCapture:
    file = read_as(BurstFile, path, max_bytes=MAX_BYTES, max_items=MAX_ITEMS)
    if file.format != FORMAT:
        raise RunUnreadable(f"{clean(path)} was written by another version of Loaderscope")
    frames = tuple(fitted(each, Frame) for each in file.frames)
    processes = [fitted(each, ProcessRow) for each in file.processes]
    return StackCapture(
        number=file.number,
        t_begin_ns=file.t_begin_ns,
        t_end_ns=file.t_end_ns,
        rate_hz=file.rate_hz,
        why=file.why,
        frames=frames,
        stacks=tuple(_stacks(file, frames, processes, collates)),
        samples={each.pid: each.samples for each in processes},
        gil={each.pid: each.gil for each in processes if each.gil is not None},
        reason=file.reason,
        waits_reason=file.waits_reason,
        nonce=file.nonce,
    )


def _stacks(
    file: BurstFile, frames: tuple[Frame, ...], processes: list[ProcessRow], collates: Collates
) -> Iterable[Stack]:
    """The stacks with their stages, equal ones merged, in the order in which they were first
    seen."""
    ours = _ours(file.package)
    rows_of: dict[int, list[StackRow]] = defaultdict(list)
    for row in file.stacks:
        if all(at < len(frames) for at in row.frames):
            rows_of[row.process].append(row)
    # By what tells stacks apart: samples in all (None), and of each wait.
    merged: dict[tuple[int, str, str, tuple[int, ...]], Counter[Wait | None]]
    merged = defaultdict(Counter)
    read = (fitted(each, Wait) for each in file.waits)
    waits = [each if each.kind in WAITS else Wait() for each in read]  # else of a newer version
    for number, process in enumerate(processes):
        rows = rows_of[number]
        owner, worker = process.owner or process.pid, process.worker is not None
        known = {loader: one for pid, loader, one in collates if pid == owner}
        its = known.get(-1 if process.loader is None else process.loader)
        matching = [its] if its is not None else [] if worker else list(known.values())
        placed: list[Placed] = []
        collating: frozenset[Frame] = frozenset()
        for _ in range(2):  # the second time with the lines that collate, as the first has found
            placed = [
                place(
                    [frames[at] for at in row.frames], row.thread, worker, matching, ours, collating
                )
                for row in rows
            ]
            collating = collating_frames(
                (each, row.samples) for each, row in zip(placed, rows, strict=True)
            )
        for row, (stage, kept, _) in zip(rows, placed, strict=True):
            key = process.pid, row.thread, stage, tuple(row.frames[at] for at in kept)
            merged[key][None] += row.samples
            for at, samples in row.waits:
                if at < len(waits):
                    merged[key][waits[at]] += samples
    return [
        Stack(*key, seen[None], {w: n for w, n in seen.items() if w is not None})
        for key, seen in merged.items()
    ]


def _ours(package: str | None) -> Callable[[Frame], bool]:
    """Whether a frame is of Loaderscope's recording, or of a command that runs a script."""
    parts = tuple(f"{package.rstrip('/')}/{part}" for part in _OWN_PARTS) if package else ()

    def ours(frame: Frame) -> bool:
        return frame.file.startswith(parts) or any(
            f"/loaderscope/{room}/" in frame.file for room in ("profiler", "tuning")
        )

    return ours
