"""Which stage a stack belongs to, told from its frames, its thread, and whether its process is a
worker.

The frames that lead to the stage (torch's loops, multiprocessing, our own) are cut off: what is
left of a stack of "fetch" begins with the data set. Line numbers of torch are not relied on, since
they differ from release to release; only the names of its functions are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...base.metadata import Scalar
from ..inspection import Part
from .stack_samples import Frame

MAIN_THREAD = "MainThread"
MOST_LINES = 200  # of a function's source that is recorded; a longer one goes on
_TORN = 4  # so many times as often as the other kind of frame must one be seen at a line
_FEW_SHARE = 0.05

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
_MARKING = (
    "torch/autograd/profiler.py",
    "torch/_ops.py",
    "typing.py",
)  # `next()` marks itself for torch's profiler
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


def collate_of(part: Part | None, config: Mapping[str, Scalar]) -> Collate | None:
    """How to recognise the collate function of a loader, from what was seen of it or from its
    configuration."""
    if part is not None and part.name != "unknown":
        name = part.name.rpartition(".")[2]
        last = part.line + len(part.call) - 1 if part.line is not None and part.call else None
        return Collate(name, part.file, part.line, None if len(part.call) >= MOST_LINES else last)
    told = config.get("collate_fn")
    return Collate(told.rpartition(".")[2]) if isinstance(told, str) and told else None


def place(
    frames: Sequence[Frame],
    thread: str,
    worker: bool,
    collates: Sequence[Collate] = (),
    ours: Callable[[Frame], bool] = lambda frame: False,
    collating: frozenset[Frame] = frozenset(),
) -> Placed:
    """The stage of one stack, outermost frame first.

    `worker`: its process is a DataLoader worker. `collates`: the collate functions it may be in.
    `ours`: whether a frame is Loaderscope's; such frames are left out wherever they are.
    `collating`: fetcher frames known to be at the line that collates (see `collating_frames`).
    Compiled frames say nothing about the stage; those below what is cut off are kept.
    """
    telling = [at for at, frame in enumerate(frames) if not frame.native and not ours(frame)]
    found = _place([frames[at] for at in telling], thread, worker, collates, collating)
    if not found.kept and found.stage in ("idle", "wait"):
        return found
    # What is kept of the telling frames is always their innermost part.
    cut = len(telling) - len(found.kept)
    begin = telling[cut - 1] + 1 if cut else telling[0] if telling else 0
    return found._replace(
        kept=tuple(at for at in range(begin, len(frames)) if not ours(frames[at]))
    )


def _place(
    frames: Sequence[Frame],
    thread: str,
    worker: bool,
    collates: Sequence[Collate],
    collating: frozenset[Frame],
) -> Placed:
    after = _last(frames, _WORKERS, "_worker_loop") if worker else None
    if after is not None:
        return _in_loop(frames, after, collates, collating)
    feeding = _last(frames, (_QUEUE,), "_feed")
    if feeding is not None:
        rest = _below(frames, feeding)
        idle = (
            bool(rest)
            and _is(frames[rest[0]], _WAITING)
            and _own_name(frames[rest[0]]) in ("wait", "acquire")
        )
        return Placed("other" if not worker else "idle" if idle else "pack", () if idle else rest)
    pinning = _last(frames, (_PIN,), "_pin_memory_loop")
    if pinning is not None:
        return Placed("pin", _after(frames, _below(frames, pinning), (_QUEUE, *_WAITING)))
    if worker:
        return Placed("other", _user(frames))
    asking = next(
        (
            at
            for at, frame in enumerate(frames)
            if _is(frame, _LOADERS) and _own_name(frame) in _ASKING
        ),
        None,
    )
    if asking is not None:
        return _in_next(frames, asking, collates, collating)
    return Placed("compute" if thread == MAIN_THREAD else "other", _user(frames))


_ASKING = ("__next__", "__iter__")


def collating_frames(placed: Iterable[tuple[Placed, int]], one_loader: bool) -> frozenset[Frame]:
    """Fetchers' frames that are at the line that collates, from the stacks of one process as placed
    without this knowledge, each with its samples.

    Where collate functions were recognised, their line is known, and a stack that ends in the
    fetcher itself (a collate function without Python frames) is told by it. Where none was (its
    source could not be looked at), the fetcher of `one_loader` calls from two lines, and the later
    one collates.
    """
    collate: dict[Frame, int] = {}
    fetch: dict[Frame, int] = {}
    bare: dict[Frame, int] = {}
    for stack, samples in placed:
        if stack.fetcher is not None:
            into = collate if stack.stage == "collate" else fetch if stack.kept else bare
            into[stack.fetcher] = into.get(stack.fetcher, 0) + samples
    found = {frame for frame, samples in collate.items() if samples > _TORN * fetch.get(frame, 0)}
    if found or not one_loader:
        return frozenset(found)
    # A stack read while it changes may show a line it was at a moment before or after: a few
    # samples prove nothing.
    least = sum(fetch.values()) * _FEW_SHARE
    calling = sorted(
        (frame for frame, samples in fetch.items() if samples >= least),
        key=lambda frame: frame.line,
    )
    if len(calling) > 1:
        return frozenset(calling[-1:])
    return frozenset(frame for frame in bare if calling and frame.line > calling[0].line)


def _in_loop(
    frames: Sequence[Frame],
    loop: int,
    collates: Sequence[Collate],
    collating: frozenset[Frame],
) -> Placed:
    """Below a worker's loop: it takes a task, fetches, collates, hands over, or is still
    preparing."""
    rest = _below(frames, loop)
    if not rest:
        return Placed("other", ())
    first = frames[rest[0]]
    if _is(first, (_FETCH,)) and _own_name(first) == "fetch":
        return _in_fetcher(frames, rest, collates, collating)
    if _is(first, (_QUEUE, *_WAITING)):
        return (
            Placed("idle", ())
            if _own_name(first) in ("get", "poll", "wait")
            else Placed("pack", rest[1:])
        )
    return Placed("other", rest)


def _in_fetcher(
    frames: Sequence[Frame],
    rest: tuple[int, ...],
    collates: Sequence[Collate],
    collating: frozenset[Frame],
) -> Placed:
    fetcher = frames[rest[0]]
    below = _after(frames, rest, (_FETCH,))
    if not below:
        return Placed("collate" if fetcher in collating else "fetch", (), fetcher)
    first = frames[below[0]]
    known = any(one.is_in(frames[at]) for at in below[:_COLLATE_DEPTH] for one in collates)
    stage = "collate" if known or _is(first, (_COLLATE,)) or fetcher in collating else "fetch"
    return Placed(stage, below, fetcher)


def _in_next(
    frames: Sequence[Frame],
    asking: int,
    collates: Sequence[Collate],
    collating: frozenset[Frame],
) -> Placed:
    """Main inside `next()`, or inside `iter()`, where it starts workers: the loop waits for loading
    in either."""
    rest = _below(frames, asking)
    for number, at in enumerate(rest):
        if _is(frames[at], (_FETCH,)) and _own_name(frames[at]) == "fetch":
            return _in_fetcher(frames, rest[number:], collates, collating)
        if not _is(frames[at], _LOADERS):
            break
    rest = _after(frames, rest, _LOADERS)
    if rest and _is(frames[rest[0]], (_PIN,)):
        return Placed("pin", rest)
    return Placed("wait", _after(frames, rest, (_QUEUE, *_WAITING, *_MARKING)))


def _user(frames: Sequence[Frame]) -> tuple[int, ...]:
    """All of a stack but what leads into the program: launchers, the start of a process or of a
    thread."""
    begun = _last(frames, ("multiprocessing/process.py",), "_bootstrap")
    kept = _below(frames, -1 if begun is None else begun)
    at = 0
    while at < len(kept) and _leads(frames[kept[at]]):
        at += 1
    return kept[at:]


def _leads(frame: Frame) -> bool:
    path = _path(frame)
    if frame.file in ("<string>", "<frozen runpy>") or _is(frame, ("runpy.py",)):
        return True
    if _is(frame, ("threading.py",)):
        return _own_name(frame) in ("_bootstrap", "_bootstrap_inner", "run")
    return any("/" + part in path for part in _LEADING)


def _below(frames: Sequence[Frame], after: int) -> tuple[int, ...]:
    return tuple(range(after + 1, len(frames)))


def _after(
    frames: Sequence[Frame], kept: tuple[int, ...], files: tuple[str, ...]
) -> tuple[int, ...]:
    """What is kept below the leading frames of these files."""
    at = 0
    while at < len(kept) and _is(frames[kept[at]], files):
        at += 1
    return kept[at:]


def _last(frames: Sequence[Frame], files: tuple[str, ...], name: str) -> int | None:
    """The innermost frame of this function: a forked process's stack begins with its parent's."""
    for at in range(len(frames) - 1, -1, -1):
        if _own_name(frames[at]) == name and _is(frames[at], files):
            return at
    return None


def _is(frame: Frame, files: tuple[str, ...]) -> bool:
    path = _path(frame)
    return any(path.endswith(file) and path[: -len(file)].endswith("/") for file in files)


def _path(frame: Frame) -> str:
    path = frame.file.replace("\\", "/")
    return path if path.startswith("/") else "/" + path


def _own_name(frame: Frame) -> str:
    """The last part: `_MapDatasetFetcher.fetch` is what Python 3.11 says, `fetch` what 3.10
    does."""
    return frame.function.rpartition(".")[2]
