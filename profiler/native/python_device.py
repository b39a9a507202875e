"""What a device needs per batch and per copy, in Python. In C it is in `src/step_marks.h` and
`noticing.h`."""

from __future__ import annotations

from types import MethodType
from typing import Any

from ..base.clock import now_ns
from ..base.schema import RECORD_BYTES, WINDOW_AT


class StepMarks:
    """Device events around each step, and the `log` of the steps that are not read yet.

    `due()` is called before a batch whose step needs more: from number `until` on, or after
    `until_ns`. While `looking`, `look(window, at, data)` returns what to keep of the batch.
    """

    def __new__(cls, make: Any, current: Any, capturing: Any, /) -> Any:
        self: Any = super().__new__(cls)
        self.make, self._current, self.capturing = make, current, capturing
        self.pool, self.log = [], []
        self._before, self._step = None, None
        self._index = current()
        self.t_entered = self.batches = self.until = self.until_ns = 0
        self.marking, self.looking = True, False
        return self

    def mark(self: Any) -> Any:
        """An event on the current stream, now; None where there can be none."""
        if not self.marking:
            return None
        index = self._current()
        if index != self._index:
            self.pool.clear()  # an event belongs to the device it was first recorded on
            self._index = index
        if self.capturing():
            return None  # an event would become part of the user's graph
        try:
            event = self.pool.pop()
        except IndexError:  # another thread may have taken the last
            event = self.make()
        event.record()
        return event

    def entered(self: Any) -> None:
        """next() was called: all work of this step has been issued."""
        try:
            event = self.mark()
            if self._step is not None:
                before, handed, window, at, wait_ns, looked = self._step
                self._step = None
                self.log.append((before, handed, event, window, at, wait_ns, looked))
            self._before = event
            self.t_entered = now_ns()
            if self.batches >= self.until or self.t_entered >= self.until_ns:
                self.due()
        except BaseException as error:
            self.failed(error)

    def handed_over(self: Any, lane: Any, n: int, data: Any, /) -> None:
        """The batch goes to the loop; its record is number `n` of the lane's window."""
        try:
            self.batches += 1
            wait_ns = now_ns() - self.t_entered
            handed = self.mark()
            window, at = lane.window, WINDOW_AT + n * RECORD_BYTES
            looked = self.look(window, at, data) if self.looking else None
            self._step = self._before, handed, window, at, wait_ns, looked
            self._before = None
        except BaseException as error:
            self.failed(error)


# Stands in for a tensor method: while `on`, or when a class or mode is `asked` about the call,
# `noticed` is called instead. It equals and hashes like the method, because subclasses look the
# method up in dictionaries, and a module imported meanwhile has seen the stand-in.
class Noticing:
    def __init__(self, original: Any, asked: Any, noticed: Any, /) -> None:
        self.__doc__ = original.__doc__
        self._original, self._asked, self._noticed = original, asked, noticed
        self.on = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch

        if torch.compiler.is_compiling():  # a compiler reads this as it does the user's code
            return self._original(*args, **kwargs)
        if self.on or self._asked(*args, *kwargs.values()):
            return self._noticed(*args, **kwargs)
        return self._original(*args, **kwargs)

    def __get__(self, tensor: Any, owner: Any = None, /) -> Any:
        return self if tensor is None else MethodType(self, tensor)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        return self._original.__reduce__()
