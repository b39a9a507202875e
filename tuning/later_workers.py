"""Workers of a pool that start one by one, between the loop's steps, in its own thread.

Forking takes a large process some tens of milliseconds: all workers of a pool at once would be one long step.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from ..profiler.base.clock import now_ns


class LaterWorkers:
    """Stands for a loader's `multiprocessing_context`: processes that it makes start when they are told to.

    Where they would be asked for before, they are as processes that have ended: nobody waits for them.
    """

    def __init__(self, context: Any) -> None:
        import torch.multiprocessing

        self._context = torch.multiprocessing if context is None else context
        self._left: deque[Any] = deque()
        self._slowest_ns = self._last_ns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *args: Any, **kwargs: Any) -> Any:
        process = self._context.Process(*args, **kwargs)
        process.__class__ = _later(type(process))
        self._left.append(process)
        return process

    def start(self, within_ns: float) -> None:
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
        """Whether all have started, the last for as long as starting took: by then it can take a task."""
        return not self._left and now_ns() - self._last_ns >= self._slowest_ns


_classes: dict[type, type] = {}


def _later(cls: type) -> type:
    """A process class whose instances have not started yet, and are not waited for."""
    if cls in _classes:
        return _classes[cls]
    body = {
        "start": lambda self: None,
        "join": lambda self, timeout=None: None,
        "pid": property(lambda self: os.getpid()),  # torch keeps it, to look whether such a child has died
    }
    _classes[cls] = type(cls.__name__, (cls,), body)
    return _classes[cls]
