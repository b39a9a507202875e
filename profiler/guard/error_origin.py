"""Whether an error is ours to keep from the loop, or the user's, which must arrive.

Python runs the handlers of signals between any two instructions of the main thread, ours too: what
a handler raises there (a time limit, a preemption) comes out of our code and is not ours. A
handler's frame gives it away: it is called with the frame that it interrupts, and nothing of ours
is ever given one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType, TracebackType
from typing import Any

from ..base.own_frames import HERE, OWN, drop_inner_frames

_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES = ("site-packages", "dist-packages")
# What our code and that it calls may raise; an error of another kind was thrown in by somebody
# else.
_KNOWN = {
    "builtins",
    __name__.partition(".")[0],
    "torch",
    "torchdata",
    "numpy",
    "psutil",
    *sys.stdlib_module_names,
}

_VARARGS = 0x04


def is_ours(error: BaseException) -> bool:
    """Whether this error, raised while our code was at work, is a failure of it. One that is the
    user's has its traceback made as if we had not been there."""
    entry = _handler_in(error.__traceback__)
    if entry is not None:
        _skip_to(error, entry)
        return False
    if isinstance(error, Exception) and not _thrown_in(error):
        return True
    drop_inner_frames(error)
    return False


def without_own(error: BaseException) -> BaseException:
    """The error less all frames of ours in its traceback: for one that C is about to raise, where
    none is running."""
    entry = error.__traceback__
    while entry is not None and _is_own(entry.tb_frame.f_code):
        entry = entry.tb_next
    error.__traceback__ = entry
    drop_inner_frames(error)
    return error


def returning_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as C calls it: it returns what it would raise, and C raises that without a frame
    of ours."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            return without_own(error)

    return call


class forgiving(suppress):
    """As `contextlib.suppress`, for our own failures: what a handler raises is never suppressed,
    whatever its kind."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return bool(super().__exit__(kind, error, trace)) and error is not None and is_ours(error)


def _handler_in(entry: TracebackType | None) -> TracebackType | None:
    """Where in this traceback a signal's handler begins."""
    registered: set[int] | None = None
    while entry is not None:
        code = entry.tb_frame.f_code
        if not _is_own(code):
            if _was_given_a_frame(entry.tb_frame):
                return entry
            if registered is None:
                registered = _codes_of_handlers()
            if id(code) in registered:
                return entry
        entry = entry.tb_next
    return None


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(OWN)


def _was_given_a_frame(frame: FrameType) -> bool:
    code = frame.f_code
    rest = bool(code.co_flags & _VARARGS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + rest]
    held = frame.f_locals
    for name in names:
        value = held.get(name)
        if type(value) is FrameType:
            return True
        if type(value) is tuple and any(type(item) is FrameType for item in value):
            return True
    return False


def _codes_of_handlers() -> set[int]:
    """Of the handlers registered now: one may have let go of the frame it was given."""
    from .static_access import in_class, underlying

    found: set[int] = set()
    for number in range(1, signal.NSIG):
        try:
            handler: Any = signal.getsignal(number)
        except (ValueError, OSError):
            continue
        if handler is None or isinstance(handler, int):
            continue
        for function in (underlying(handler), underlying(in_class(type(handler), "__call__"))):
            code = getattr(function, "__code__", None)
            if type(code) is CodeType:
                found.add(id(code))
    return found


def _skip_to(error: BaseException, entry: TracebackType) -> None:
    """Leave out what lies between the outermost frame of ours, which is still running, and this
    entry."""
    before = error.__traceback__
    if before is entry:
        return
    while before is not None and not _is_own(before.tb_frame.f_code):
        if before.tb_next is entry:
            return
        before = before.tb_next
    if before is not None:
        before.tb_next = entry


def _thrown_in(error: BaseException) -> bool:
    """Whether it is of a kind that no code of ours knows and no other's code was running: thrown by
    another thread, or by a handler that has no frame."""
    module = type.__dict__["__module__"].__get__(type(error))
    if type(module) is not str or module.partition(".")[0] in _KNOWN:
        return False
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    file = entry.tb_frame.f_code.co_filename if entry is not None else HERE
    if file.startswith((*OWN, "<frozen ")):
        return True
    return file.startswith(_STDLIB) and not any(
        f"{os.sep}{name}{os.sep}" in file for name in _PACKAGES
    )
