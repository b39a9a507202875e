"""Doing something where no signal's handler can interrupt it: in a thread of its own.

Opening a run takes milliseconds of other people's code too (imports, files, a process started),
which may take a handler's error for one of its own, or be left half done by it. Handlers run in the
main thread only: it waits here, in one place, and what they raise there is raised when the work is
done.
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

# The work is waited for no longer than this: it may hang on a file system, or on a lock of Python's
# imports that a handler's error has left locked for all threads but the main one. Once interrupted,
# not even so long: whoever presses Ctrl-C wants to be heard.
PATIENCE_S = 10.0
PATIENCE_INTERRUPTED_S = 2.0
_GONE_S = 0.01

_late: _Task | None = None  # what was given up on, as long as it is at work
_collecting = False  # whether garbage is to be collected again once the work is done


def apart(work: Callable[[], T]) -> T:
    """What `work` returns or raises. Where a handler has raised meanwhile, that error, after the
    work. RuntimeError where that takes too long; then nothing more is done so until it has come to
    its end after all."""
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
    """Whether something that was given up on is still at work."""
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
        self._thread = _thread.get_native_id() if hasattr(_thread, "get_native_id") else 0
        if (
            gc.isenabled()
        ):  # what the user's objects do when they go away, they do in threads of the user's
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
        """Until the work is done; what a handler raised meanwhile."""
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
        """A process that forks with threads in it is warned: this one must be over."""
        path = f"/proc/self/task/{self._thread}"
        deadline = time.monotonic() + _GONE_S
        try:
            while time.monotonic() < deadline:
                os.stat(path)  # os.path.exists() takes a handler's OSError for its own
                time.sleep(0)
        except FileNotFoundError:
            return


def _forget_thread() -> None:
    """Whoever asked for the current thread in here has left one in `threading.enumerate()`."""
    known = getattr(threading, "_active", None)
    if type(known) is dict:
        known.pop(threading.get_ident(), None)


def _collect_again() -> None:
    global _collecting
    if _collecting:
        _collecting = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collect_again)
