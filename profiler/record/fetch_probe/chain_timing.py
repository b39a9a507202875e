"""Stand-ins for a chain's sequence: they hold the same callables, and read the clock between items.

A chain does `for step in self.steps: x = step(x)`, so the time between two items is that of the
first. No callable is wrapped. Copies, pickles, later slices, and new objects of the type
(`type(chain)(items)`) are plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import get_ident
from typing import Any

from ...base.clock import now_ns


class Times:
    """Calls and ns of each callable of a chain, counted while `active`, in the thread that began
    the sample."""

    def __init__(self, length: int) -> None:
        self.active = True
        self.thread = get_ident()
        self.steps = [[0, 0] for _ in range(length)]

    def counting(self) -> bool:
        """Whether this thread is being sampled."""
        return self.active and get_ident() == self.thread


class _StandIn:
    """What the stand-ins share. `_plain` is the type each stands in for."""

    _plain: Any
    _loaderscope: tuple[Times, Sequence[int]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._plain(*args, **kwargs)

    @classmethod
    def of(cls, items: Any, timing: tuple[Times, Sequence[int]]) -> Any:
        made = cls._plain.__new__(cls, items)
        cls._plain.__init__(made, items)
        made._loaderscope = timing
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        plain = self._plain
        return plain, (list(getattr(plain, "items", plain.__iter__)(self)),)


class _Sequence(_StandIn):
    def __iter__(self) -> Iterator[Any]:
        items = self._plain.__iter__(self)
        times, positions = self._loaderscope
        return _timing(items, times, positions) if times.counting() else items

    def __getitem__(self, key: Any) -> Any:
        found = self._plain.__getitem__(self, key)
        times, positions = self._loaderscope
        if type(key) is slice and times.active:
            return self.of(found, (times, positions[key]))
        return found


class TimedList(_Sequence, list[Any]):
    """A chain's list. Changes made during a sample are carried over, see `chains`."""

    _plain = list


class TimedTuple(_Sequence, tuple[Any, ...]):
    """A chain's tuple."""

    _plain = tuple


class TimedModules(_StandIn, dict[str, Any]):
    """The modules of an `nn.Sequential`, which iterates over their `values()`."""

    _plain = dict

    def values(self) -> Any:
        values = dict.values(self)
        if not self._loaderscope[0].counting():
            return values
        return TimedList.of(values, self._loaderscope)


_KINDS: dict[type, Any] = {list: TimedList, tuple: TimedTuple, dict: TimedModules}


def timed(chain: Any, times: Times) -> Any:
    """A stand-in that times the items of this plain list, tuple or dict."""
    return _KINDS[type(chain)].of(chain, (times, range(len(times.steps))))


def _timing(items: Iterator[Any], times: Times, positions: Sequence[int]) -> Iterator[Any]:
    for place, item in enumerate(items):
        start = now_ns()
        yield item
        took = now_ns() - start
        # A generator of the user's may go on after the sample.
        if times.active and place < len(positions):
            step = times.steps[positions[place]]
            step[0] += 1
            step[1] += took
