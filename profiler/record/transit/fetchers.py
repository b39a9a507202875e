"""Timing inside a fetcher without standing in the call stack: no frame of ours where the user's
code warns or fails.

A fetcher does `data = [dataset[i] for i in indices]` and then `return self.collate_fn(data)`. The
attribute look-up of `collate_fn` is the moment between fetch and collate; a property on the
instance's class marks it. Single samples are timed by handing the fetcher a list whose iterator
looks at the clock.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from typing import Any

from ...native.form import BatchTimings, hooks


class TimedIndices(list[Any]):
    """A batch's indices; iterating over them notes when each one is asked for, and the end."""

    stamps: list[int]

    def __iter__(self) -> Iterator[Any]:
        self.stamps = []
        return hooks.Stamping(self, self.stamps)


def fetched_one_by_one(dataset: Any, auto_collation: bool) -> bool:
    """Whether torch asks for the samples of a batch singly. If not, the data set gets the very
    object the sampler drew, and must: without automatic batching, or with `__getitems__`. That is
    looked for without running the code of a data set that makes attributes as they are asked for:
    there it may be, and samples are not timed."""
    from ...guard.static_access import in_class

    if not auto_collation:
        return False
    cls = type(dataset)
    if any(in_class(cls, name) is not None for name in ("__getitems__", "__getattr__")):
        return False
    return in_class(cls, "__getattribute__") is object.__getattribute__ and not _has_own(
        dataset, "__getitems__"
    )


def _has_own(value: Any, name: str) -> bool:
    """Whether the object itself holds this attribute, which its class does not."""
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True


def with_stamps(index: Any) -> Any:
    """The same indices, timed, where they are a plain list; the object itself otherwise."""
    if type(index) is not list:
        return index
    timed = TimedIndices(index)
    timed.stamps = []
    return timed


def sample_times(timed: Any) -> tuple[float, float, float]:
    """(fastest, median, slowest) sample in ns; NaN three times where single samples were not
    timed."""
    stamps = timed.stamps if type(timed) is TimedIndices else ()
    if len(stamps) < 2:
        nan = float("nan")
        return nan, nan, nan
    times = sorted(b - a for a, b in itertools.pairwise(stamps))
    return float(times[0]), float(times[len(times) // 2]), float(times[-1])


def with_code_of_its_own(function: Any) -> Any:
    """A copy of a function that shares no code object with it; the function itself if it is not one
    of Python's.

    Since Python 3.11 each attribute access in a code object remembers the class it last met. Code
    that serves our classes and torch's plain ones in turn would for ever forget: that costs loops
    beside ours, and ours, some 20 ns an access, a hundred times a batch.
    """
    if type(function) is not types.FunctionType:
        return function
    copy = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy


_classes: dict[tuple[type, bool], type] = {}


def mark_collate(fetcher: Any, timings: BatchTimings, marks_end: bool = False) -> Any:
    """A twin of this fetcher that sets `timings.t_collate` (and CPU time, if detailed) each time it
    is to collate.

    With `marks_end` it also sets `t_collated`, when the batch is fetched and collated. A twin, and
    not the fetcher itself under another class: changing an object's class makes its attributes
    slower, and torch reads `fetcher.dataset` once a sample.
    """
    key = (type(fetcher), marks_end)
    cls = _classes.get(key)
    if cls is None:
        cls = _classes[key] = _marking_class(*key)
    twin: Any = object.__new__(cls)
    twin._loaderscope_timings = timings
    return _copy_attributes(fetcher, twin)


def unmark_collate(fetcher: Any) -> Any:
    """The plain fetcher again; the very object if it was never marked."""
    if type(fetcher) not in _classes.values():
        return fetcher
    base = type(fetcher).__mro__[1]
    return _copy_attributes(fetcher, object.__new__(base))


def _copy_attributes(source: Any, target: Any) -> Any:
    for name, value in vars(source).items():
        setattr(target, name, value)
    return target


def _marking_class(base: type, marks_end: bool) -> type:
    own_attributes: Any = next(
        vars(cls)["__dict__"] for cls in base.__mro__ if "__dict__" in vars(cls)
    )

    def attributes(self: Any) -> dict[str, Any]:
        # Whoever asks finds what a plain fetcher has. Not before: attributes are slower once
        # `__dict__` was asked for.
        found: dict[str, Any] = own_attributes.__get__(self)
        if hasattr(self, "_loaderscope_collate"):
            found["collate_fn"] = self._loaderscope_collate
        return found

    body: dict[str, Any] = {
        "__slots__": ("_loaderscope_collate", "_loaderscope_timings"),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__dict__": property(attributes),
        "collate_fn": hooks.CollateMark(),
    }
    fetch_of_base = with_code_of_its_own(base.fetch)  # type: ignore[attr-defined]
    body["fetch"] = hooks.fetching(fetch_of_base) if marks_end else fetch_of_base
    return type(base.__name__, (base,), body)
