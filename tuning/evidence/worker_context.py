"""How workers start that the user's code does not have.

Forking takes a large process some tens of milliseconds, so all workers of a pool at once would be
one long step. They can start one by one between the loop's steps, in its own thread.
"""

import os
from collections import deque
from typing import Any

from ...profiler.base.clock import now_ns
from .shared_files import reopen_files


class WorkerContext:
    """Replaces a loader's `multiprocessing_context`. Processes that it forks share no file
    positions."""

    def __init__(self, context: Any, later: bool = False) -> None:
        """`later`: processes start when they are told to. Until then they behave as ended ones, so
        nobody waits for them."""
        import torch.multiprocessing

        self._context = torch.multiprocessing if context is None else context
        self._forks, self._later = forks(context), later
        self._waiting: deque[Any] = deque()
        self._slowest_ns = self._last_ns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *args: Any, **kwargs: Any) -> Any:
        process = self._context.Process(*args, **kwargs)
        if self._forks:
            process.__class__ = _derived(type(process), run=_run)
        if self._later:
            process.__class__ = _derived(type(process), **_NOT_STARTED)
            self._waiting.append(process)
        return process

    def start(self, within_ns: int) -> None:
        """Start the next process, and more while that has not taken so long."""
        began = now = now_ns()
        while self._waiting:
            process = self._waiting[0]
            not_started = type(process)
            process.__class__ = not_started.__mro__[1]
            try:
                process.start()
            except BaseException:
                process.__class__ = not_started
                raise
            self._waiting.popleft()
            before, now = now, now_ns()
            self._slowest_ns, self._last_ns = max(self._slowest_ns, now - before), now
            if now - began >= within_ns:
                break

    @property
    def started(self) -> bool:
        return not self._waiting

    @property
    def ready(self) -> bool:
        """Whether all have started, the last one long enough ago to take a task."""
        return self.started and now_ns() - self._last_ns >= self._slowest_ns


def forks(context: Any) -> bool:
    """Whether a loader with this `multiprocessing_context` forks its workers."""
    import multiprocessing

    method = (context or multiprocessing).get_start_method(allow_none=True)
    return (method or multiprocessing.get_all_start_methods()[0]) == "fork"


def _run(process: Any) -> None:
    try:
        reopen_files()
    except OSError:
        os._exit(1)  # silently; torch tells the training process
    super(type(process), process).run()


# Torch keeps the pid, to look whether such a child has died.
_NOT_STARTED = {
    "start": lambda self: None,
    "join": lambda self, timeout=None: None,
    "pid": property(lambda self: os.getpid()),
}


_classes: dict[tuple[Any, ...], type] = {}


def _derived(cls: type, **body: Any) -> type:
    """A subclass of a process class under the same name."""
    return _classes.setdefault((cls, *body), type(cls.__name__, (cls,), body))
