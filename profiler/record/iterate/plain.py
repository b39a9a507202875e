"""Watches any other iterable of batches with a stand-in that passes everything on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import length_hint
from typing import Any

from ...native.form import hooks
from .iteration import Iteration, begun
from .iterators import on_end, on_failure
from .recorder import Recorder


class WatchedIterable:
    """Stands in for an iterable: attributes, length, items and type tests go to the original."""

    __slots__ = ("__weakref__", "_iterator", "_original", "_recorder")

    def __init__(self, original: Any, recorder: Recorder) -> None:
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_recorder", recorder)
        object.__setattr__(self, "_iterator", None)

    def __iter__(self) -> Iterator[Any]:
        measured = begin_iteration(self._recorder)
        return measured(iter(self._original))

    def __next__(self) -> Any:
        if self._iterator is None:
            measured = begin_iteration(self._recorder)
            object.__setattr__(self, "_iterator", measured(self._original))
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._original)

    def __length_hint__(self) -> int:
        return length_hint(self._original)

    def __bool__(self) -> bool:
        return bool(self._original)

    def __getitem__(self, index: Any) -> Any:
        return self._original[index]

    def __contains__(self, item: object) -> bool:
        return item in self._original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        # A copy, or what another process receives, is the plain iterable.
        return _itself, (self._original,)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._original)


def _itself(value: Any) -> Any:
    return value


def begin_iteration(recorder: Recorder) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Begin an iteration of this recorder's iterable. Returns a function that makes the iterator
    measure, or leaves it as it is if nothing can be recorded."""
    step = begun(Iteration(recorder), lambda step: step.begin(0))
    return _itself if step is None else partial(_WatchedIterator, step)


class _WatchedIterator:
    """One iteration over a plain iterable."""

    _pin_memory = False

    def __init__(self, step: Iteration, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._ls = step
        # Their differences, the times of drawing, fetching and collating, are -1: not measured.
        step.t_index, step.t_fetch, step.t_collate, step.t_collated = 0, -1, -2, -3

    def __iter__(self) -> _WatchedIterator:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Code that saves a pipeline's state first checks whether this is the pipeline's iterator.
        return type(self._iterator)

    __next__ = hooks.stepping(lambda self: next(self._iterator), on_end, on_failure)
