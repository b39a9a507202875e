"""How workers start of a pool that the user's code does not have: apart from this process, and one
by one.

Forking takes a large process some tens of milliseconds: all workers of a pool at once would be one
long step. So they start between the loop's steps, in its own thread.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from ..profiler.base.clock import now_ns
from .apart import reopen_files


class ApartWorkers:
    """Stands for a loader's `multiprocessing_context`: processes that it forks share no position in
    a file."""

    def __init__(self, context: Any) -> None:
        import torch.multiprocessing

        self._context = torch.multiprocessing if context is None else context
        self._forks = forks(context)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *args: Any, **kwargs: Any) -> Any:
        process = self._context.Process(*args, **kwargs)
        if self._forks:
            process.__class__ = _derived(type(process), "run", run=_run_apart)
        return process


def forks(context: Any) -> bool:
    """Whether a loader with this `multiprocessing_context` forks its workers."""
    import multiprocessing

    method = (
        context.get_start_method()
        if context is not None
        else multiprocessing.get_start_method(allow_none=True)
    )
    return (method or multiprocessing.get_all_start_methods()[0]) == "fork"


def _run_apart(process: Any) -> None:
    try:
        reopen_files()
    except OSError:
        os._exit(
            1
        )  # without a word on the program's error output; torch tells the training process
    super(type(process), process).run()


class LaterWorkers(ApartWorkers):
    """And they start when they are told to.

    Where they would be asked for before, they are as processes that have ended: nobody waits for
    them.
    """

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._left: deque[Any] = deque()
        self._slowest_ns = self._last_ns = 0

    def Process(self, *args: Any, **kwargs: Any) -> Any:
        process = super().Process(*args, **kwargs)
        process.__class__ = _derived(type(process), "later", **_LATER)
        self._left.append(process)
        return process

    def start(self, within_ns: int) -> None:
        """The next one, and more as long as that has not taken so long."""
        began = self._last_ns = now_ns()
        while self._left and (self._last_ns == began or self._last_ns - began < within_ns):
            process = self._left[0]
            later = type(process)
            process.__class__ = later.__mro__[1]
            try:
                process.start()
            except BaseException:
                process.__class__ = later
                raise
            self._left.popleft()
            before, self._last_ns = self._last_ns, now_ns()
            self._slowest_ns = max(self._slowest_ns, self._last_ns - before)

    @property
    def started(self) -> bool:
        return not self._left

    @property
    def ready(self) -> bool:
        """Whether all have started, the last for as long as starting took: by then it can take a
        task."""
        return not self._left and now_ns() - self._last_ns >= self._slowest_ns


# A process that has not started yet, and is not waited for. Torch keeps its pid, to look whether
# such a child has died.
_LATER = {
    "start": lambda self: None,
    "join": lambda self, timeout=None: None,
    "pid": property(lambda self: os.getpid()),
}
_classes: dict[tuple[type, str], type] = {}


def _derived(cls: type, what: str, **body: Any) -> type:
    """A process class under the same name."""
    if (cls, what) not in _classes:
        _classes[cls, what] = type(cls.__name__, (cls,), body)
    return _classes[cls, what]
