"""Times the inside of a fetcher without a frame on the stack, where the user's code may warn or
fail.

A fetcher does `data = [dataset[i] for i in indices]`, then `return self.collate_fn(data)`. A
property on the instance's class notes when `collate_fn` is looked up. For single samples the
fetcher gets a list whose iterator reads the clock.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator, Sequence
from typing import Any

from ...guard.static_access import in_class
from ...native.form import BatchTimings, hooks


class TimedIndices(list[Any]):
    """A batch's indices. Iterating over them notes the time of each request, and the end."""

    stamps: Sequence[int] = ()

    def __iter__(self) -> Iterator[Any]:
        stamps = self.stamps = list[int]()
        return hooks.Stamping(self, stamps)


def fetched_one_by_one(dataset: Any, auto_collation: bool) -> bool:
    """Whether torch asks for the samples of a batch one by one. Otherwise (without automatic
    batching, or with `__getitems__`) the data set must get the very object the sampler drew. A data
    set that makes attributes on demand may have `__getitems__`, and its code is not run."""
    cls = type(dataset)
    if not auto_collation or in_class(cls, "__getattr__") is not None:
        return False
    if in_class(cls, "__getattribute__") is not object.__getattribute__:
        return False
    try:
        object.__getattribute__(dataset, "__getitems__")
    except AttributeError:
        return True
    return False


def with_stamps(index: Any) -> Any:
    """A plain list of indices, timed; any other object unchanged."""
    return TimedIndices(index) if type(index) is list else index


def sample_times(timed: Any) -> tuple[float, float, float]:
    """(fastest, median, slowest) sample in ns, NaN if samples were not timed."""
    stamps = timed.stamps if type(timed) is TimedIndices else ()
    if len(stamps) < 2:
        nan = float("nan")
        return nan, nan, nan
    times = sorted(b - a for a, b in itertools.pairwise(stamps))
    return float(times[0]), float(times[len(times) // 2]), float(times[-1])


def copied(function: Any, replaced: dict[str, Any] | None = None) -> Any:
    """A copy of a Python function with its own code object, and other objects under some global
    names. Anything else is returned as it is.

    Since Python 3.11 each attribute access in a code object caches the class it last met. If one
    code object served our classes and torch's in turn, each access would cost some 20 ns more, a
    hundred times per batch.
    """
    if type(function) is not types.FunctionType:
        return function
    names, code = function.__globals__, function.__code__.replace()
    if replaced:
        names.setdefault("__warningregistry__", {})  # both know which warnings were shown
        names = {**names, **replaced}
    copy = types.FunctionType(
        code, names, function.__name__, function.__defaults__, function.__closure__
    )
    for name in ("__kwdefaults__", "__qualname__", "__module__"):
        setattr(copy, name, getattr(function, name))
    return copy


_classes: dict[tuple[type, bool], type] = {}


def mark_collate(fetcher: Any, timings: BatchTimings, marks_end: bool = False) -> Any:
    """A twin of this fetcher that sets `timings.t_collate` (and CPU time, with detail) before it
    collates, and with `marks_end` also `t_collated` afterwards.

    Changing the class of the fetcher itself would make its attributes slower, and torch reads
    `fetcher.dataset` once per sample.
    """
    key = (type(fetcher), marks_end)
    cls = _classes.get(key)
    if cls is None:
        cls = _classes[key] = _marking_class(*key)
    twin: Any = object.__new__(cls)
    twin._loaderscope_timings = timings
    return _copy_attributes(fetcher, twin)


def unmark_collate(fetcher: Any) -> Any:
    """The plain fetcher again, or the object itself if it was not marked."""
    for cls, base in itertools.pairwise(type(fetcher).__mro__):
        if cls in _classes.values():
            return _copy_attributes(fetcher, object.__new__(base))
    return fetcher


def _copy_attributes(source: Any, target: Any) -> Any:
    for name, value in vars(source).items():
        setattr(target, name, value)
    return target


def _marking_class(base: type, marks_end: bool) -> type:
    own_attributes: Any = next(
        vars(cls)["__dict__"] for cls in base.__mro__ if "__dict__" in vars(cls)
    )

    def attributes(self: Any) -> dict[str, Any]:
        # The attributes of a plain fetcher, made on demand: `__dict__` makes attributes slower.
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
    fetch_of_base = copied(base.fetch)  # type: ignore[attr-defined]
    body["fetch"] = hooks.fetching(fetch_of_base) if marks_end else fetch_of_base
    return type(base.__name__, (base,), body)
