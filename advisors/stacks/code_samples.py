"""The stack samples of a loader: those of its workers, and of main while it was iterated, merged
over all bursts.

Samples of main inside and outside `next()` count for every loader that was in use at the time.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.stacks.stack_samples import Frame, StackCapture, Wait
from .libraries import Owner, owner_of

_WORKER_STAGES = frozenset({"fetch", "collate", "pack"})
_MAIN_STAGES = frozenset({"index", "pin", "wait", "compute"})
_INLINE_STAGES = frozenset({"fetch", "collate"})  # of main, where there are no workers
_ACCESS = ("__getitem__", "__getitems__", "__iter__", "__next__")
Frames = tuple[Frame, ...]


@dataclass
class Samples:
    """The samples of one loader, in these bursts. `stacks` has those of each stage by stack,
    outermost frame first, and `waits` what the thread did in those of which that is known.
    `gil` maps a stage to (samples, those that held the GIL) of processes where that was measured.
    `shared` counts samples that may belong to another loader."""

    bursts: list[StackCapture] = field(default_factory=list)
    stacks: dict[str, Counter[Frames]] = field(default_factory=dict)
    gil: dict[str, tuple[float, float]] = field(default_factory=dict)
    shared: int = 0
    waits: dict[str, dict[Frames, Counter[Wait]]] = field(default_factory=dict)


def samples_of(run: Run, process: ProcessRun, loader: LoaderRun) -> Samples:
    """The loader's samples in all bursts of its host."""
    found = Samples()
    for burst in (burst for system in run.samplers_of(process) for burst in system.bursts):
        in_use = [each for each in process.loaders if _iterated(each, burst)] or [*process.loaders]
        workers, seen = _workers(process, burst), False
        for stack in burst.stacks:
            if stack.samples <= 0 or any(not 0 <= n < len(burst.frames) for n in stack.frames):
                continue
            frames = tuple(burst.frames[place] for place in stack.frames)
            owners: Collection[int] = ()
            if stack.pid != process.pid:
                if stack.stage in _WORKER_STAGES and stack.pid in workers:
                    owners = (workers[stack.pid],)
            elif stack.stage in _INLINE_STAGES:
                inline = [each for each in in_use if not each.num_workers]
                named = [each for each in inline if _on_stack(each, frames)]
                owners = [each.index for each in named or inline]
            elif stack.stage in _MAIN_STAGES:
                owners = [each.index for each in in_use]
            if loader.index not in owners:
                continue
            seen, frames = True, _tidy(frames)
            found.stacks.setdefault(stack.stage, Counter())[frames] += stack.samples
            found.waits.setdefault(stack.stage, defaultdict(Counter))[frames].update(stack.waits)
            if len(owners) > 1 and stack.stage in _INLINE_STAGES:
                found.shared += stack.samples
            held = burst.gil.get(stack.pid)
            if held is not None:
                counted, holding = found.gil.get(stack.stage, (0.0, 0.0))
                found.gil[stack.stage] = counted + stack.samples, holding + held * stack.samples
        if seen:
            found.bursts.append(burst)
    return found


def _workers(process: ProcessRun, burst: StackCapture) -> dict[int, int]:
    """Process id of each worker → its loader during the burst, as ids are reused."""
    rows = process.workers
    columns = (rows[name].tolist() for name in ("t_ns", "pid", "loader"))
    started = sorted(zip(*columns, strict=True), key=lambda row: row[0])
    # A worker is known even if its start was recorded late or without a clock.
    known = {pid: loader for _, pid, loader in reversed(started)}
    known.update({pid: loader for t_ns, pid, loader in started if t_ns <= burst.t_end_ns})
    return known


def _on_stack(loader: LoaderRun, frames: Frames) -> bool:
    """Whether an access method of the loader's data set is on the stack."""
    for frame in frames:
        owner, _, method = frame.function.rpartition(".")
        # Before Python 3.11 a frame does not name its class.
        if method in _ACCESS and any(
            part.file == frame.file and owner in ("", part.name)
            for part in loader.inspection.parts
            if part.file
        ):
            return True
    return False


def _iterated(loader: LoaderRun, burst: StackCapture) -> bool:
    """Whether an epoch of the loader and the burst overlap."""
    begins, ends = loader.epochs["t_iter_ns"], loader.epochs["t_end_ns"]
    ends = np.where(ends < 0, np.append(begins[1:], -1), ends)
    return bool(np.any((begins <= burst.t_end_ns) & ((ends < 0) | (ends >= burst.t_begin_ns))))


def owner(frame: Frame) -> Owner:
    return owner_of(frame.file, frame.function)


def _tidy(frames: Frames) -> Frames:
    """Frames of comprehensions merged into the function around them, as Python 3.12 runs them."""
    kept: list[Frame] = []
    for frame in frames:
        inside = kept and frame.function.endswith("comp>")
        kept.append(replace(kept.pop(), line=frame.line) if inside else frame)
    return tuple(kept)
