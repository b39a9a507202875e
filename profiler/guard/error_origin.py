"""Tells our own errors, which the loop must not see, from the user's, which must reach it.

Python runs signal handlers between any two instructions of the main thread, including ours. What a
handler raises there (a time limit, a preemption) passes through our code but is the user's. Such an
error is recognised by the handler's frame: handlers are called with the interrupted frame, and no
function of ours ever receives a frame.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType, TracebackType
from typing import Any

from ..base.own_frames import HERE, OWN, drop_inner_frames
from .users_code import of_python

# The packages whose errors our code may raise. Any other error was thrown in from outside.
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
    """Whether this error, raised while our code ran, is a failure of ours. A user's error has our
    frames removed from its traceback."""
    entry = _handler_in(error.__traceback__)
    if entry is not None:
        _skip_to(error, entry)
        return False
    if isinstance(error, Exception) and not _thrown_in(error):
        return True
    drop_inner_frames(error)
    return False


def without_own(error: BaseException) -> BaseException:
    """The error without our frames in its traceback, for C to raise: no frame of ours is running
    then."""
    entry = error.__traceback__
    while entry is not None and _is_own(entry.tb_frame.f_code):
        entry = entry.tb_next
    error.__traceback__ = entry
    drop_inner_frames(error)
    return error


def returning_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the form C calls: it returns its error, which C then raises without a frame
    of ours."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            return without_own(error)

    return call


class forgiving(suppress):
    """`contextlib.suppress` for our own failures, by default any `Exception`. The user's errors
    always pass."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        super().__init__(*kinds or (Exception,))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return bool(super().__exit__(kind, error, trace)) and error is not None and is_ours(error)


def _handler_in(entry: TracebackType | None) -> TracebackType | None:
    """The entry of this traceback at which a signal handler begins."""
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
    """Codes of the registered handlers: a handler may have deleted the frame it received."""
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
    """Remove the entries between our outermost frame, which still runs, and this entry."""
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
    """Whether another thread, or a handler without a frame, threw this error: its type is unknown
    to our code, and nobody else's code was running."""
    module = type.__dict__["__module__"].__get__(type(error))
    if type(module) is not str or module.partition(".")[0] in _KNOWN:
        return False
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    file = entry.tb_frame.f_code.co_filename if entry is not None else HERE
    return file.startswith(OWN) or of_python(file)
