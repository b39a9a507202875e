"""Which stage a stack belongs to, by its frames, its thread, and whether its process is a
worker.

The frames that lead to the stage (torch's loops, multiprocessing, our own) are cut off: what is
left of a stack of "fetch" begins with the data set. Line numbers of torch are not relied on, since
they differ from release to release; only the names of its functions are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...base.metadata import Scalars
from ..inspection import Part
from .stack_samples import Frame

MAIN_THREAD = "MainThread"
MOST_LINES = 200  # of a function's source that is recorded; a longer one goes on
_TORN = 4  # a line is of one kind of frame if that was seen there this many times as often

_FETCH = "torch/utils/data/_utils/fetch.py"
_COLLATE = "torch/utils/data/_utils/collate.py"
_PIN = "torch/utils/data/_utils/pin_memory.py"
_LOADERS = (
    "torch/utils/data/dataloader.py",
    "torchdata/stateful_dataloader/stateful_dataloader.py",
)
_WORKERS = ("torch/utils/data/_utils/worker.py", "torchdata/stateful_dataloader/worker.py")
_QUEUE = "multiprocessing/queues.py"
_WAITING = (
    "threading.py",
    "selectors.py",
    "queue.py",
    "multiprocessing/connection.py",
    "multiprocessing/synchronize.py",
)
# `next()` marks itself for torch's profiler.
_MARKING = ("torch/autograd/profiler.py", "torch/_ops.py", "typing.py")
_LEADING = ("multiprocessing/", "torch/multiprocessing/", "concurrent/futures/")
_COLLATE_DEPTH = 4  # a decorated collate function is a few frames below the fetcher


@dataclass(frozen=True)
class Collate:
    """How a loader's collate function is recognised: its own name, and where it is written, as far
    as that is known."""

    name: str
    file: str | None = None
    first_line: int | None = None
    last_line: int | None = None

    def is_in(self, frame: Frame) -> bool:
        """Whether this frame is the function's."""
        own = _own_name(frame)
        if self.file is None:
            return own == self.name
        if frame.file != self.file:
            return False
        if self.first_line is not None and self.last_line is not None:
            return self.first_line <= frame.line <= self.last_line
        return own in (self.name, "__call__")


class Placed(NamedTuple):
    """A stack's stage, the positions of the frames that are kept, and the fetcher's frame below
    which it lies."""

    stage: str
    kept: tuple[int, ...]
    fetcher: Frame | None = None


def collate_of(part: Part | None, config: Scalars) -> Collate | None:
    """How to recognise the collate function of a loader, from what was seen of it or from its
    configuration."""
    if part is not None and part.name != "unknown":
        name = part.name.rpartition(".")[2]
        last = part.line + len(part.call) - 1 if part.line is not None and part.call else None
        return Collate(name, part.file, part.line, None if len(part.call) >= MOST_LINES else last)
    found = config.get("collate_fn")
    return Collate(found.rpartition(".")[2]) if isinstance(found, str) and found else None


def place(
    frames: Sequence[Frame],
    thread: str,
    worker: bool,
    collates: Sequence[Collate],
    ours: Callable[[Frame], bool],
    collating: frozenset[Frame],
) -> Placed:
    """The stage of one stack, outermost frame first.

    `worker`: its process is a DataLoader worker. `collates`: the collate functions it may be in.
    `ours`: whether a frame is Loaderscope's; such frames are left out wherever they are.
    `collating`: fetcher frames known to be at the line that collates (see `collating_frames`).
    Compiled frames say nothing about the stage; those below what is cut off are kept.
    """
    telling = [at for at, frame in enumerate(frames) if not ours(frame)]
    stack = _Stack([frames[at] for at in telling], collates, collating)
    found = stack.placed(thread, worker)
    if not found.kept and found.stage in ("idle", "wait"):
        return found
    # What is kept of the telling frames is always their innermost part.
    cut = len(telling) - len(found.kept)
    begin = telling[cut - 1] + 1 if cut else telling[0] if telling else 0
    return found._replace(
        kept=tuple(at for at in range(begin, len(frames)) if not ours(frames[at]))
    )


def collating_frames(placed: Iterable[tuple[Placed, int]]) -> frozenset[Frame]:
    """Fetchers' frames that are at the line that collates, from the stacks of one process as placed
    without this knowledge, each with its samples.

    Where collate functions were recognised, their line is known, and a stack that ends in the
    fetcher itself (a collate function without Python frames) is known by it.
    """
    collate, fetch = Counter[Frame](), Counter[Frame]()
    for stack, samples in placed:
        if stack.fetcher is not None and (stack.kept or stack.stage == "collate"):
            (collate if stack.stage == "collate" else fetch)[stack.fetcher] += samples
    return frozenset(frame for frame, samples in collate.items() if samples > _TORN * fetch[frame])


@dataclass(frozen=True)
class _Stack:
    """The frames that tell of one stack. Methods take the first of the frames that are left."""

    frames: list[Frame]
    collates: Sequence[Collate]
    collating: frozenset[Frame]

    def placed(self, thread: str, worker: bool) -> Placed:
        loop = self._below(_WORKERS, "_worker_loop") if worker else None
        if loop is not None:
            return self._in_loop(loop)
        feeding = self._below((_QUEUE,), "_feed")
        if feeding is not None:
            idle = self._is(feeding, _WAITING, "wait", "acquire")
            return self._kept("other" if not worker else "idle" if idle else "pack", feeding, idle)
        pinning = self._below((_PIN,), "_pin_memory_loop")
        if pinning is not None:
            return self._kept("pin", self._after(pinning, (_QUEUE, *_WAITING)))
        if not worker:
            for at in range(len(self.frames)):
                if self._is(at, _LOADERS, "__next__", "__iter__"):
                    return self._in_next(at + 1)
        # All of a stack but what leads into the program: launchers, the start of a process or of a
        # thread.
        first = self._below(("multiprocessing/process.py",), "_bootstrap") or 0
        while first < len(self.frames) and self._leads(first):
            first += 1
        return self._kept("compute" if thread == MAIN_THREAD and not worker else "other", first)

    def _in_loop(self, first: int) -> Placed:
        """Below a worker's loop: it takes a task, fetches, collates, hands over, or is still
        preparing."""
        if self._is(first, (_FETCH,), "fetch"):
            return self._in_fetcher(first)
        if self._is(first, (_QUEUE, *_WAITING)):
            idle = _own_name(self.frames[first]) in ("get", "poll", "wait")
            return self._kept("idle" if idle else "pack", first + 1, idle)
        return self._kept("other", first)

    def _in_fetcher(self, first: int) -> Placed:
        fetcher, below = self.frames[first], self._after(first, (_FETCH,))
        inner = self.frames[below : below + _COLLATE_DEPTH]
        known = any(one.is_in(frame) for frame in inner for one in self.collates)
        known = known or fetcher in self.collating or self._is(below, (_COLLATE,))
        return self._kept("collate" if known else "fetch", below)._replace(fetcher=fetcher)

    def _in_next(self, first: int) -> Placed:
        """Main inside `next()`, or inside `iter()`, where it starts workers: the loop waits for
        loading in either."""
        called, first = first, self._after(first, _LOADERS)
        if self._is(first, (_FETCH,), "fetch"):
            return self._in_fetcher(first)
        if any(_own_name(frame) == "_next_index" for frame in self.frames[called:first]):
            return self._kept("index", first)
        if self._is(first, (_PIN,)):
            return self._kept("pin", first)
        return self._kept("wait", self._after(first, (_QUEUE, *_WAITING, *_MARKING)))

    def _kept(self, stage: str, first: int, nothing: bool = False) -> Placed:
        return Placed(stage, () if nothing else tuple(range(first, len(self.frames))))

    def _leads(self, at: int) -> bool:
        file = self.frames[at].file
        return (
            file in ("<string>", "<frozen runpy>")
            or self._is(at, ("runpy.py",))
            or self._is(at, ("threading.py",), "_bootstrap", "_bootstrap_inner", "run")
            or any("/" + part in "/" + file for part in _LEADING)
        )

    def _after(self, first: int, files: tuple[str, ...]) -> int:
        """The first frame below the leading ones of these files."""
        while self._is(first, files):
            first += 1
        return first

    def _below(self, files: tuple[str, ...], name: str) -> int | None:
        """The frame below the innermost of this function: a forked process's stack begins with its
        parent's."""
        found = (at for at in range(len(self.frames), 0, -1) if self._is(at - 1, files, name))
        return next(found, None)

    def _is(self, at: int, files: tuple[str, ...], *names: str) -> bool:
        """Whether there is a frame here of one of these files, and of these functions."""
        if at >= len(self.frames) or (names and _own_name(self.frames[at]) not in names):
            return False
        path = "/" + self.frames[at].file
        return any(path.endswith("/" + file) for file in files)


def _own_name(frame: Frame) -> str:
    """The last part: `_MapDatasetFetcher.fetch` is what Python 3.11 says, `fetch` what 3.10
    does."""
    return frame.function.rpartition(".")[2]
