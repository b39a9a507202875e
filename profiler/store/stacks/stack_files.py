"""Reading the sampler's `stacks-<n>.json`: bounded, typed, each stack given its stage. Nothing in
them is trusted."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...base.errors import RunUnreadable
from ...base.metadata import MAX_INT, clean, integer, number, read_json, read_object, scalars, text
from ..inspection import read_inspection
from .stack_samples import Frame, Stack, StackCapture
from .stack_stages import Collate, collate_of, collating_frames, place

FORMAT = 1
MAX_BYTES = 4 << 20  # twice what the sampler writes
MAX_FILES = 64
MAX_FRAMES = 20_000
MAX_STACKS = 20_000
MAX_DEPTH = 512
MAX_PROCESSES = 256

# Of each training process, the collate functions of its loaders by the loaders' numbers.
Collates = Mapping[int, Mapping[int, Collate]]
_NAME = re.compile(r"stacks-(\d{1,4})\.json")
# The extension where it is loaded from a checkout, and its source where debug information names
# that.
_COMPILED = re.compile(r"(?:^|/)profiler/(?:native/|_hot\.|compiled/)")
_Key = tuple[tuple[int, tuple[tuple[int, Collate], ...]], ...]


@dataclass(frozen=True)
class _Process:
    """What the file says of one process."""

    pid: int
    owner: int
    worker: bool
    loader: int | None
    samples: int
    gil: float | None


def read_bursts(
    system: Path, collates: Collates
) -> tuple[tuple[StackCapture, ...], tuple[str, ...]]:
    """The bursts in a system directory in order, and notes on those that cannot be read. Never
    raises."""
    bursts, notes = [], []
    for path in _files(system):
        try:
            bursts.append(read_burst(path, collates))
        except RunUnreadable as error:
            notes.append(f"{error}: left out")
    bursts.sort(key=lambda burst: (burst.t_begin_ns, burst.number))
    return tuple(bursts), tuple(notes)


def read_burst(path: Path, collates: Collates) -> StackCapture:
    """One burst. What was read before is not read again while the file is the same. Raises
    RunUnreadable."""
    try:
        found = path.stat()
    except OSError as error:
        raise RunUnreadable(f"{clean(path)} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise RunUnreadable(f"{clean(path)} is not a file")
    key = tuple((pid, tuple(sorted(loaders.items()))) for pid, loaders in sorted(collates.items()))
    return _read(path, (found.st_ino, found.st_mtime_ns, found.st_size), key)


def collates_in(run_path: Path) -> Collates:
    """The collate functions of a run's loaders, from their JSON alone. Never raises."""
    found: dict[int, dict[int, Collate]] = {}
    for path in run_path.glob("p*/loader*.json"):
        process = re.fullmatch(r"p(\d{1,12})-\d{1,9}", path.parent.name)
        index = re.fullmatch(r"loader(\d{1,9})\.json", path.name)
        if process is None or index is None:
            continue
        try:
            data = read_json(path)
        except RunUnreadable:
            continue
        one = collate_of(read_inspection(data).collate, scalars(data, "config"))
        if one is not None:
            found.setdefault(int(process[1]), {})[int(index[1])] = one
    return found


def answer_to(run_path: Path, nonce: str) -> StackCapture | None:
    """The burst of this run that answers a request; None where there is none (yet). Never
    raises."""
    for system in sorted(run_path.glob("system-*")):
        for path in reversed(_files(system)):
            try:
                if _load(path).get("nonce") == nonce:
                    return read_burst(path, collates_in(run_path))
            except (RunUnreadable, OSError):
                continue
    return None


def _files(system: Path) -> list[Path]:
    try:
        numbered = [
            (int(match[1]), name) for name in os.listdir(system) if (match := _NAME.fullmatch(name))
        ]
    except OSError:
        return []
    return [system / name for _, name in sorted(numbered)[:MAX_FILES]]


@lru_cache(maxsize=MAX_FILES)
def _read(path: Path, stamp: tuple[int, int, int], collates: _Key) -> StackCapture:
    try:
        return _burst(_load(path), {pid: dict(loaders) for pid, loaders in collates})
    except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
        raise RunUnreadable(f"{clean(path)} is corrupt: {type(error).__name__}") from error


def _load(path: Path) -> dict[str, Any]:
    value = read_object(path, MAX_BYTES)
    if value.get("format") != FORMAT:
        raise RunUnreadable(f"{clean(path)} was written by another version of Loaderscope")
    return value


def _burst(data: dict[str, Any], collates: Collates) -> StackCapture:
    frames = tuple(_frame(item) for item in _list(data, "frames", MAX_FRAMES))
    processes = [_process(item) for item in _list(data, "processes", MAX_PROCESSES)]
    reason = text(data, "reason")
    return StackCapture(
        number=_bounded(integer(data, "number")),
        t_begin_ns=_bounded(integer(data, "t_begin_ns")),
        t_end_ns=_bounded(integer(data, "t_end_ns")),
        rate_hz=_figure(number(data, "rate_hz"), 1e6),
        native=data.get("native") is True,
        why="asked" if data.get("why") == "asked" else "steady",
        frames=frames,
        stacks=tuple(_stacks(data, frames, processes, collates)),
        samples={one.pid: one.samples for one in processes},
        gil={one.pid: one.gil for one in processes if one.gil is not None},
        reason=None if reason is None else clean(reason),
    )


def _stacks(
    data: dict[str, Any], frames: tuple[Frame, ...], processes: list[_Process], collates: Collates
) -> Iterable[Stack]:
    """The stacks with their stages, equal ones merged, in the order in which they were first
    seen."""
    raw: dict[int, list[tuple[str, tuple[int, ...], int]]] = {}
    for item in _list(data, "stacks", MAX_STACKS):
        if not isinstance(item, list) or len(item) != 4:
            continue
        owner, thread, places, samples = item
        if (
            not _is_count(owner, len(processes))
            or not isinstance(places, list)
            or not _is_count(samples, MAX_INT)
        ):
            continue
        if samples and all(_is_count(place, len(frames)) for place in places[:MAX_DEPTH]):
            raw.setdefault(owner, []).append(
                (clean(thread, 100), tuple(places[:MAX_DEPTH]), samples)
            )
    ours = _ours(text(data, "package"))
    merged: dict[tuple[int, str, str, tuple[int, ...]], int] = {}
    for number_, found in sorted(raw.items()):
        process = processes[number_]
        known = collates.get(process.owner, {})
        one = known.get(process.loader) if process.loader is not None else None
        matching = [one] if one is not None else [] if process.worker else list(known.values())

        def placed(
            thread: str,
            places: tuple[int, ...],
            collating: frozenset[Frame] = frozenset(),
            process: _Process = process,
            matching: list[Collate] = matching,
        ) -> Any:
            return place(
                [frames[at] for at in places], thread, process.worker, matching, ours, collating
            )

        collating = collating_frames(
            ((placed(thread, places), samples) for thread, places, samples in found),
            one_loader=process.worker or len(known) == 1,
        )
        for thread, places, samples in found:
            stage, kept, _ = placed(thread, places, collating)
            key = (process.pid, thread, stage, tuple(places[at] for at in kept))
            merged[key] = merged.get(key, 0) + samples
    return [Stack(*key, samples) for key, samples in merged.items()]


def _ours(package: str | None) -> Callable[[Frame], bool]:
    """Whether a frame is of Loaderscope's recording, its compiled part included, or of a command
    that runs a script."""
    folder = package.rstrip("/") + "/" if package else None
    # The command was one file once: runs recorded then are still read.
    parts = (
        tuple(folder + part for part in ("profiler/", "tuning/", "cli/", "cli.py", "__main__.py"))
        if folder
        else ()
    )

    def ours(frame: Frame) -> bool:
        if frame.file.startswith(parts):
            return True
        return any(f"/loaderscope/{room}/" in frame.file for room in ("profiler", "tuning")) or (
            frame.native and _COMPILED.search(frame.file) is not None
        )

    return ours


def _process(item: Any) -> _Process:
    told = item if isinstance(item, dict) else {}
    pid, gil = _bounded(integer(told, "pid")), number(told, "gil")
    loader = integer(told, "loader")
    return _Process(
        pid=pid,
        owner=_bounded(integer(told, "owner")) or pid,
        worker=told.get("worker") is not None,
        loader=loader if loader is not None and loader >= 0 else None,
        samples=_bounded(integer(told, "samples")),
        gil=gil if gil is not None and 0.0 <= gil <= 1.0 else None,
    )


def _frame(item: Any) -> Frame:
    fields = item if isinstance(item, list) else []
    function, file, line, native = (*fields, *[None] * 4)[:4]
    return Frame(
        clean(function, 300) if isinstance(function, str) and function else "unknown",
        clean(file, 1000) if isinstance(file, str) else "",
        line if _is_count(line, 1 << 31) else 0,
        native is True,
    )


def _list(data: Mapping[str, Any], key: str, most: int) -> list[Any]:
    value = data.get(key)
    return value[:most] if isinstance(value, list) else []


def _is_count(value: Any, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _bounded(value: int | None) -> int:
    return value if value is not None and 0 <= value < MAX_INT else 0


def _figure(value: float | None, most: float) -> float:
    return value if value is not None and 0.0 <= value <= most else 0.0
