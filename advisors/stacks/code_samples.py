"""Which stack samples are a loader's: those of its workers, and of main while it was iterated,
merged over all bursts.

What main does inside and outside `next()` is given to every loader that was in use at the time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.stacks.stack_samples import Frame, Stack, StackCapture

_WORKER_STAGES = frozenset({"fetch", "collate", "pack"})
_MAIN_STAGES = frozenset({"pin", "wait", "compute"})
_INLINE_STAGES = frozenset({"fetch", "collate"})  # of main, where there are no workers
_ACCESS = ("__getitem__", "__getitems__", "__iter__", "__next__")
# Python 3.12 runs comprehensions inside their function; before, they are shown as part of it too.
_COMPREHENSION = re.compile(r"(?:(.+?)(?:\.<locals>)?\.)?<(?:list|dict|set)comp>", re.DOTALL)

Frames = tuple[Frame, ...]


@dataclass
class Samples:
    """What was seen of one loader. `stacks` has the samples of each stage by stack, outermost frame
    first; `gil` maps a stage to (samples, those that held the GIL), of processes where that was
    measured. `shared` counts samples that may be another loader's as well."""

    bursts: int = 0
    seconds: float = 0.0
    rate_hz: float | None = None
    native: bool = False
    stacks: dict[str, Counter[Frames]] = field(default_factory=dict)
    gil: dict[str, tuple[float, float]] = field(default_factory=dict)
    shared: int = 0


def samples_of(run: Run, process: ProcessRun, loader: LoaderRun) -> Samples:
    """The loader's samples in all bursts of its host."""
    found = Samples()
    owners = _Owners(process)
    tidied: dict[Frames, Frames] = {}
    for system in run.samplers_of(process):
        for burst in system.bursts:
            _add(found, burst, process, loader, owners, tidied)
    return found


def _add(
    found: Samples,
    burst: StackCapture,
    process: ProcessRun,
    loader: LoaderRun,
    owners: _Owners,
    tidied: dict[Frames, Frames],
) -> None:
    in_use = [each for each in process.loaders if _iterated(each, burst)] or list(process.loaders)
    seen = False
    for stack in burst.stacks:
        chosen = owners.of(stack, burst, in_use)
        if loader.index not in chosen or stack.samples <= 0:
            continue
        if any(not 0 <= place < len(burst.frames) for place in stack.frames):
            continue
        seen = True
        frames = tuple(burst.frames[place] for place in stack.frames)
        if frames not in tidied:
            tidied[frames] = _tidy(frames)
        found.stacks.setdefault(stack.stage, Counter())[tidied[frames]] += stack.samples
        if len(chosen) > 1 and stack.stage in _INLINE_STAGES:
            found.shared += stack.samples
        held = burst.gil.get(stack.pid)
        if held is not None:
            counted, holding = found.gil.get(stack.stage, (0.0, 0.0))
            found.gil[stack.stage] = counted + stack.samples, holding + held * stack.samples
    if seen:
        found.bursts += 1
        found.seconds += max(0, burst.t_end_ns - burst.t_begin_ns) / 1e9
        found.rate_hz = burst.rate_hz
        found.native = found.native or any(frame.native for frame in burst.frames)


class _Owners:
    """Tells which loaders of a process a stack belongs to."""

    def __init__(self, process: ProcessRun) -> None:
        self.process = process
        rows = process.workers
        order = np.argsort(rows["t_ns"], kind="stable").tolist()
        self.started = [
            (int(rows["t_ns"][n]), int(rows["pid"][n]), int(rows["loader"][n])) for n in order
        ]
        self._workers: tuple[int, dict[int, int]] | None = None

    def of(self, stack: Stack, burst: StackCapture, in_use: list[LoaderRun]) -> tuple[int, ...]:
        """Numbers of the loaders: none for what is nobody's, several where nothing tells them
        apart."""
        if stack.pid != self.process.pid:
            owner = self._worker_of(burst).get(stack.pid)
            return (owner,) if owner is not None and stack.stage in _WORKER_STAGES else ()
        if stack.stage in _INLINE_STAGES:
            frames = [
                burst.frames[place] for place in stack.frames if 0 <= place < len(burst.frames)
            ]
            return _apart([each for each in in_use if not each.num_workers], frames)
        return tuple(each.index for each in in_use) if stack.stage in _MAIN_STAGES else ()

    def _worker_of(self, burst: StackCapture) -> dict[int, int]:
        """Process id of each worker → its loader, as it was during the burst: ids are used
        again."""
        if self._workers is None or self._workers[0] != burst.t_end_ns:
            # Clocks that were not recorded, or a row written late, make no worker unknown.
            known = {pid: loader for _, pid, loader in reversed(self.started)}
            known.update(
                {pid: loader for t_ns, pid, loader in self.started if t_ns <= burst.t_end_ns}
            )
            self._workers = burst.t_end_ns, known
        return self._workers[1]


def _apart(candidates: list[LoaderRun], frames: list[Frame]) -> tuple[int, ...]:
    """The loaders whose data set's access method is on the stack; all of them if that tells
    nothing."""
    if len(candidates) > 1:
        named = [each for each in candidates if _on_stack(each, frames)]
        candidates = named or candidates
    return tuple(each.index for each in candidates)


def _on_stack(loader: LoaderRun, frames: Iterable[Frame]) -> bool:
    places = {(part.file, part.name) for part in loader.inspection.parts if part.file}
    files: Mapping[str | None, set[str]] = {
        file: {n for f, n in places if f == file} for file, _ in places
    }
    for frame in frames:
        owner, _, method = frame.function.rpartition(".")
        # Before Python 3.11 a frame does not name its class.
        if method in _ACCESS and (names := files.get(frame.file)) and (not owner or owner in names):
            return True
    return False


def _iterated(loader: LoaderRun, burst: StackCapture) -> bool:
    """Whether an epoch of the loader and the burst overlap."""
    rows = loader.epochs
    for number in range(rows.rows):
        begin, end = int(rows["t_iter_ns"][number]), int(rows["t_end_ns"][number])
        if end < 0 and number + 1 < rows.rows:
            end = int(rows["t_iter_ns"][number + 1])
        if begin <= burst.t_end_ns and (end < 0 or end >= burst.t_begin_ns):
            return True
    return False


def _tidy(frames: Frames) -> Frames:
    """Without comprehensions as functions of their own: their lines become those of the function
    around them."""
    kept: list[Frame] = []
    for frame in frames:
        found = _COMPREHENSION.fullmatch(frame.function)
        if found is None:
            kept.append(frame)
            continue
        before = kept[-1] if kept else None
        inside = before is not None and before.file == frame.file and not before.native
        if before is not None and inside and (found[1] is None or found[1] == before.function):
            kept[-1] = replace(before, line=frame.line)
        elif found[1]:
            kept.append(replace(frame, function=found[1]))
        else:
            kept.append(frame)
    return tuple(kept)
