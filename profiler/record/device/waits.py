"""Finds the lines of the program that copy to the device, and those that wait for it, in a few
steps of a loop.

`loss.item()`, `float(loss)` and `print(loss)` read a value that the device has yet to compute. The
methods behind them are wrapped on the loop's own thread for STEPS steps per loader. So the loop
pays once, and code that reads many values of CPU tensors hardly notices.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any

from ...base.clock import now_ns
from ...guard.error_origin import forgiving
from ...guard.static_access import unseen
from ..inspect.uses import place_of, users_frame
from .wrapped import Wrapped, device_of

# The steps of an epoch that are observed, after the first, in which a program sets up much.
FIRST, STEPS = 4, 8
# Slower steps are given up, so that no wrapper stays when a loop is left half way.
MOST_NS = 60_000_000_000
MAX_PLACES = 16

_CALLS = ("item", "cpu", "tolist", "__float__", "__int__", "__bool__")
# Ends with the loop's iterator, or at its time limit.
_watch: weakref.ref[Watch] | None = None
_wrapped = Wrapped()


class Watch:
    """The observed steps of one loop."""

    def __init__(self, kind: str, stream: Callable[[], Any] | None) -> None:
        self._kind = kind
        self._thread = get_ident()
        self._stream = stream
        self._until_ns = now_ns() + MOST_NS
        self._waits: dict[tuple[str, str, int], list[int]] = {}
        self._copied_at: dict[tuple[str, int], int] = {}
        self._inside = False
        self.steps = self.copies = self.aside = 0
        self._handed_on: Any = None

    def begin(self) -> bool:
        """False if another loop is observed now."""
        global _watch
        other = _current()
        if other is not None and now_ns() < other._until_ns:
            return False
        _watch = weakref.ref(self)
        for name in _CALLS:
            _wrapped.wrap(name, partial(_noticed, name), on=True)
        return True

    def end(self) -> None:
        global _watch
        if _current() in (self, None):
            _watch = None
            _wrapped.unwrap()

    def handed_over(self) -> None:
        self._handed_on = self._stream() if self._stream is not None else None

    def copied(self) -> None:
        """The caller is about to copy a batch."""
        self.copies += 1
        if self._stream is not None:
            self.aside += bool(self._stream() != self._handed_on)
        frame = users_frame(sys._getframe(1))
        if frame is not None and len(self._copied_at) < MAX_PLACES:
            place = frame.f_code.co_filename, frame.f_lineno
            self._copied_at[place] = self._copied_at.get(place, 0) + 1

    def over(self) -> bool:
        """A step has ended. True if it was the last."""
        self.steps += 1
        return self.steps >= STEPS

    def called(
        self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call the method, and note its time if it waits for the device."""
        if self._inside or get_ident() != self._thread or not args:
            return call(*args, **kwargs)
        with unseen():
            waits = device_of(args[0]) == self._kind
        if not waits:
            return call(*args, **kwargs)
        began = now_ns()
        self._inside = True  # `print` reads values by other methods of these
        try:
            return call(*args, **kwargs)
        finally:
            self._inside = False
            self._note(name, now_ns() - began, began)

    def _note(self, name: str, took_ns: int, now: int) -> None:
        with forgiving():
            if now > self._until_ns:
                self.end()
            frame = users_frame(sys._getframe(2))
            if frame is not None and len(self._waits) < MAX_PLACES:
                place = name, frame.f_code.co_filename, frame.f_lineno
                self._waits.setdefault(place, []).append(took_ns)

    def found(self, with_source: bool) -> dict[str, Any]:
        """For the loader's JSON."""

        def at(file: str, line: int, times: int) -> dict[str, Any]:
            source = linecache.getline(file, line).strip()[:200] if with_source else None
            return {"place": place_of(file, line), "line": source, "a_step": times / self.steps}

        waits = [
            {"call": name, **at(file, line, len(took)), "mean_ns": sum(took) / len(took)}
            for (name, file, line), took in self._waits.items()
        ]
        copies = [at(file, line, times) for (file, line), times in self._copied_at.items()]
        known = self.copies and self._stream is not None
        aside = self.aside / self.copies if known else None
        return {"steps": self.steps, "aside_share": aside, "waits": waits, "copies": copies}


def _current() -> Watch | None:
    return _watch() if _watch is not None else None


def _noticed(name: str, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Called in the method's place, and calls it."""
    watch = _current()
    if watch is None:
        _wrapped.unwrap()
        return method(*args, **kwargs)
    return watch.called(name, method, args, kwargs)
