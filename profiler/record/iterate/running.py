"""Iterators that were made before they were watched: made to measure from their next batch on, and
back.

Their workers run torch's plain loop, so what happens inside those stays unmeasured; waiting, steps
and index drawing are seen.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from ...base import torch_parts
from ..transit import fetchers
from .iterators import base_of, instrumented
from .recorder import Iteration, Recorder, failed

_live: weakref.WeakSet[Any] = weakref.WeakSet()

_WORKERS = (
    "the workers were started before the loader was watched: what happens inside them is not seen"
)


def remember(iterator: Any) -> None:
    """Keep track of a measuring iterator, so that `release` finds it."""
    _live.add(iterator)


def is_measuring(iterator: Any) -> bool:
    """Whether this iterator is of a measuring class, and not torch's own."""
    return hasattr(type(iterator), "_ls")


def instrument_running(iterator: Any, step: Iteration) -> Any:
    """Make an existing iterator measure; returns it. One of an unknown kind is left as it is."""
    try:
        return _instrumented(iterator, step)
    except BaseException as error:  # the iterator works, and must go on
        if not failed(error, step.recorder):
            raise
        if is_measuring(iterator):
            iterator._ls = None
        return iterator


def _instrumented(iterator: Any, step: Iteration) -> Any:
    kind = type(iterator)
    if (
        not issubclass(kind, torch_parts.iterator_base())
        or getattr(iterator, "_ls", None) is not None
    ):
        return iterator
    if not is_measuring(iterator) and torch_parts.missing_of_iterator(kind):
        return iterator
    quiet = getattr(iterator, "_IterableDataset_len_called", None) is not None
    if base_of(type(iterator)) is None:
        iterator.__class__ = instrumented(type(iterator), quiet)
    if step.rows is None and not step.begin(iterator._num_workers):
        return iterator
    iterator._ls = step
    if hasattr(iterator, "_dataset_fetcher"):
        iterator._dataset_fetcher = fetchers.mark_collate(
            iterator._dataset_fetcher, step, marks_end=True
        )
    elif workers := getattr(iterator, "_workers", None):
        for metric in ("fetch", "collate", "pack", "queued", "unpack", "pin"):
            step.recorder.note(metric, _WORKERS)
        step.recorder.workers_started(step.epoch, [w.pid for w in workers])
    remember(iterator)
    return iterator


def instrument_all_running(step_for: Callable[[Any], Iteration]) -> None:
    """Adopt every DataLoader iterator of this process."""
    base = torch_parts.iterator_base()
    # The type is asked, not isinstance: looking at `__class__` of strange objects can run their
    # code.
    for iterator in [o for o in gc.get_objects() if issubclass(type(o), base)]:
        if getattr(iterator, "_ls", None) is None:
            instrument_running(iterator, step_for(iterator))


def release(recorder: Recorder) -> None:
    """Let the iterators of one loader be plain again, as far as their workers allow."""
    for iterator in list(_live):
        step = getattr(iterator, "_ls", None)
        if step is not None and step.recorder is recorder:
            _release(iterator)


def release_all() -> None:
    """Let all iterators be plain again."""
    for iterator in list(_live):
        _release(iterator)


def _release(iterator: Any) -> None:
    iterator._ls = None
    if hasattr(iterator, "_dataset_fetcher"):
        iterator._dataset_fetcher = fetchers.unmark_collate(iterator._dataset_fetcher)
        base = base_of(type(iterator))
        if base is not None:
            iterator.__class__ = base
    # An iterator with workers keeps its class: their envelopes must be opened as long as they come.
    _live.discard(iterator)
