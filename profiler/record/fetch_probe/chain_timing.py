"""Sequences that hold the very same callables as a chain, and look at the clock between handing out
one and the next.

Such a chain does `for step in self.steps: x = step(x)`, so the time between two items is the time
of the first. No callable is wrapped: whoever looks at one finds the user's own. Copies, pickles,
slices past the sample, and what others make of the type (`type(chain)(items)`) are plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import get_ident
from typing import Any

from ...base.clock import now_ns


class Times:
    """Calls and ns of each callable of one chain, counted while `active` and in the thread that
    began the sample."""

    __slots__ = ("active", "steps", "thread")

    def __init__(self, length: int) -> None:
        self.active = True
        self.thread = get_ident()
        self.steps = [[0, 0] for _ in range(length)]

    def counting(self) -> bool:
        """Whether this thread is being sampled."""
        return self.active and get_ident() == self.thread


class TimedList(list[Any]):
    """A chain's list. Changes made to it during a sample are carried over, see `chains`."""

    __slots__ = ("_loaderscope",)
    _loaderscope: tuple[Times, Sequence[int]]

    def __new__(cls, *args: Any) -> Any:
        return list(*args)

    @staticmethod
    def of(items: Any, timing: tuple[Times, Sequence[int]]) -> TimedList:
        made = list.__new__(TimedList)
        list.__init__(made, items)
        made._loaderscope = timing
        return made

    def __iter__(self) -> Iterator[Any]:
        items = list.__iter__(self)
        times, positions = self._loaderscope
        return _timing(items, times, positions) if times.counting() else items

    def __getitem__(self, key: Any) -> Any:
        found = list.__getitem__(self, key)
        times, positions = self._loaderscope
        return (
            TimedList.of(found, (times, positions[key]))
            if type(key) is slice and times.active
            else found
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (plain(self),)


class TimedTuple(tuple[Any, ...]):
    """A chain's tuple."""

    _loaderscope: tuple[Times, Sequence[int]]

    def __new__(cls, *args: Any) -> Any:
        return tuple(*args)

    @staticmethod
    def of(items: Any, timing: tuple[Times, Sequence[int]]) -> TimedTuple:
        made = tuple.__new__(TimedTuple, items)
        made._loaderscope = timing
        return made

    def __iter__(self) -> Iterator[Any]:
        items = tuple.__iter__(self)
        times, positions = self._loaderscope
        return _timing(items, times, positions) if times.counting() else items

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        times, positions = self._loaderscope
        return (
            TimedTuple.of(found, (times, positions[key]))
            if type(key) is slice and times.active
            else found
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        return tuple, (plain(self),)


class TimedModules(dict[str, Any]):
    """The modules of an `nn.Sequential`, which iterates over their `values()`."""

    __slots__ = ("_loaderscope",)
    _loaderscope: tuple[Times, Sequence[int]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return dict(*args, **kwargs)

    @staticmethod
    def of(items: Any, timing: tuple[Times, Sequence[int]]) -> TimedModules:
        made = dict.__new__(TimedModules)
        dict.update(made, items)
        made._loaderscope = timing
        return made

    def values(self) -> Any:
        if not self._loaderscope[0].counting():
            return dict.values(self)
        return TimedList.of(dict.values(self), self._loaderscope)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(dict.items(self)),)


def timed(chain: Any, times: Times) -> Any:
    """The same items in a sequence that times them; the chain is a plain list, tuple or dict."""
    kinds: dict[type, Any] = {list: TimedList, tuple: TimedTuple, dict: TimedModules}
    return kinds[type(chain)].of(chain, (times, range(len(times.steps))))


def plain(chain: Any) -> list[Any]:
    """The items, untimed."""
    if type(chain) is TimedList:
        return list(list.__iter__(chain))
    return list(tuple.__iter__(chain))


def _timing(items: Iterator[Any], times: Times, positions: Sequence[int]) -> Iterator[Any]:
    for place, item in enumerate(items):
        start = now_ns()
        yield item
        took = now_ns() - start
        # What goes on after the sample, in a generator of the user's, is no longer counted.
        if times.active and place < len(positions):
            step = times.steps[positions[place]]
            step[0] += 1
            step[1] += took
