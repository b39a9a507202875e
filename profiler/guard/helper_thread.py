"""Runs work in a thread of its own, where no signal handler can interrupt it.

Opening a run takes milliseconds in other people's code (imports, files, starting a process), which
could mistake a handler's error for its own, or be left half done. Handlers only run in the main
thread. It waits here, and raises their errors when the work is done.
"""

from __future__ import annotations

import _thread
import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# The longest wait: the work may hang on a file system, or on an import lock that a handler's error
# has left locked for all threads but the main one. After Ctrl-C the wait is shorter.
PATIENCE_S = 10.0
PATIENCE_INTERRUPTED_S = 2.0
_GONE_S = 0.01

_late: _Task | None = None  # the task that took too long
_collecting = False  # whether to enable the garbage collector after the work


def in_helper_thread(work: Callable[[], T]) -> T:
    """Return or raise what `work` does, or raise the error of a handler that ran meanwhile.
    RuntimeError if the work takes too long; further calls are refused until it ends."""
    global _late
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    if is_late():
        raise RuntimeError("something hung before")
    task = _Task(work)
    try:
        _thread.start_new_thread(task.run, ())
    except RuntimeError:  # no more threads
        return work()
    interruption = task.wait()
    _late = None if task.over else task
    if interruption is not None:
        raise interruption
    if _late is not None:
        raise RuntimeError(f"it took more than {PATIENCE_S:.0f} s")
    if task.error is not None:
        raise task.error
    return task.result  # type: ignore[no-any-return]


def is_late() -> bool:
    """Whether work that took too long is still running."""
    return _late is not None and not _late.over


class _Task:
    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._done = _thread.allocate_lock()
        self._done.acquire()
        self._thread = 0
        self.over = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        global _collecting
        self._thread = _thread.get_native_id()
        if gc.isenabled():  # finalizers of the user's objects belong in the user's threads
            _collecting = True
            gc.disable()
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        finally:
            _collect_again()
            _forget_thread()
            self.over = True
            self._done.release()

    def wait(self) -> BaseException | None:
        """Wait for the work; return the error a handler raised meanwhile."""
        interruption: BaseException | None = None
        while True:
            try:
                if not self.over:
                    self._done.acquire(
                        timeout=PATIENCE_S if interruption is None else PATIENCE_INTERRUPTED_S
                    )
                self._wait_until_gone()
                return interruption
            except BaseException as error:
                interruption = error

    def _wait_until_gone(self) -> None:
        """Python warns when a process with threads forks, so the thread must have ended."""
        path = f"/proc/self/task/{self._thread}"
        deadline = time.monotonic() + _GONE_S
        try:
            while time.monotonic() < deadline:
                os.stat(path)  # os.path.exists() would swallow a handler's OSError
                time.sleep(0)
        except FileNotFoundError:
            return


def _forget_thread() -> None:
    """Code that asked for the current thread here has left an entry in `threading.enumerate()`."""
    getattr(threading, "_active", {}).pop(threading.get_ident(), None)


def _collect_again() -> None:
    global _collecting
    if _collecting:
        _collecting = False
        gc.enable()


os.register_at_fork(after_in_child=_collect_again)
