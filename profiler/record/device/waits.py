"""A few steps of a loop, looked at closely: which lines of the program copy to the device, and
which wait for it.

`loss.item()`, `float(loss)`, `print(loss)` and their like read a value that the device has yet to
compute. The methods they come to are wrapped like those that copy, on the loop's own thread, for
STEPS steps a loader: the loop pays for it once, and code that reads many values (of tensors on the
CPU, where nothing is waited for) hardly notices.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

from ...base.clock import now_ns
from ...guard.error_origin import is_ours
from ...guard.static_access import unseen
from ..inspect.uses import place_of, users_frame
from .wrapped import as_asked, device_of, noticing

# Of an epoch, the steps looked at: after the first ones, in which a program sets up much.
FIRST, STEPS = 4, 8
# Steps that take longer than this together are given up: the wrappers do not stay where a loop is
# left half way.
MOST_NS = 60_000_000_000
MAX_PLACES = 16

_CALLS = ("item", "cpu", "tolist", "__float__", "__int__", "__bool__")
# Goes away with the loop's iterator, or by its time limit.
_watch: weakref.ref[Watch] | None = None
_methods: dict[str, Any] = {}


class Watch:
    """The steps looked at, of one loop."""

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
        """False where another loop is being looked at."""
        global _watch
        other = _current()
        if other is not None and now_ns() < other._until_ns:
            return False
        import torch

        _watch = weakref.ref(self)
        for name in _CALLS:
            if name not in vars(torch.Tensor):  # somebody else's wrapper stays as it is
                original = getattr(torch.Tensor, name)
                method = _methods[name] = noticing(original, _noticed(name, original))
                method.on = True
                setattr(torch.Tensor, name, method)
        return True

    def end(self) -> None:
        if _current() in (self, None):
            _take_away()

    def handed_over(self) -> None:
        self._handed_on = self._stream() if self._stream is not None else None

    def copied(self) -> None:
        """A copy of a batch is about to be made, by whoever called."""
        self.copies += 1
        if self._stream is not None:
            self.aside += bool(self._stream() != self._handed_on)
        frame = users_frame(sys._getframe(1))
        if frame is not None and len(self._copied_at) < MAX_PLACES:
            place = frame.f_code.co_filename, frame.f_lineno
            self._copied_at[place] = self._copied_at.get(place, 0) + 1

    def over(self) -> bool:
        """A step has ended; whether that was the last."""
        self.steps += 1
        return self.steps >= STEPS

    def called(
        self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the method gives, with a note of how long that took."""
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
        try:
            if now > self._until_ns:
                self.end()
            frame: FrameType | None = users_frame(sys._getframe(2))
            if frame is not None and len(self._waits) < MAX_PLACES:
                self._waits.setdefault((name, frame.f_code.co_filename, frame.f_lineno), []).append(
                    took_ns
                )
        except Exception as error:
            if not is_ours(error):
                raise

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


def _take_away() -> None:
    global _watch
    import torch

    _watch = None
    while _methods:
        name, method = _methods.popitem()
        if vars(torch.Tensor).get(name) is method:
            delattr(torch.Tensor, name)


def _noticed(name: str, original: Any) -> Callable[..., Any]:
    """What is called in the method's place, and calls it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        import torch

        watch = _current()
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        if watch is None:
            _take_away()
            return original(*args, **kwargs)
        return watch.called(name, as_asked(original, (*args, *kwargs.values())), args, kwargs)

    return call
