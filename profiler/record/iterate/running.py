"""Makes iterators that already run measure from their next batch on, and undoes that.

Their workers run torch's plain loop, so the inside of those is not measured. Waiting, steps and
index drawing are.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from ...base import torch_parts
from ..transit import fetchers
from .iteration import Iteration
from .iterators import base_of, instrumented
from .recorder import Recorder

_live: weakref.WeakSet[Any] = weakref.WeakSet()

_WORKERS = (
    "the workers were started before the loader was watched: what happens inside them is not seen"
)


def remember(iterator: Any) -> None:
    """Let `release` find this measuring iterator."""
    _live.add(iterator)


def is_measuring(iterator: Any) -> bool:
    """Whether this iterator has a measuring class."""
    return hasattr(type(iterator), "_ls")


def instrument_running(iterator: Any, step: Iteration) -> Any:
    """Make a running iterator measure, unless its kind is unknown; returns it."""
    try:
        return _instrumented(iterator, step)
    except BaseException as error:  # the iterator works, and must go on
        if not step.recorder.failed(error):
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
        step.recorder.note(_WORKERS, "fetch", "collate", "pack", "queued", "unpack", "pin")
        step.recorder.workers_started(step.epoch, [w.pid for w in workers])
    remember(iterator)
    return iterator


def instrument_all_running(step_for: Callable[[Any], Iteration]) -> None:
    """Make every DataLoader iterator of this process measure."""
    base = torch_parts.iterator_base()
    # Not isinstance: asking foreign objects for `__class__` can run their code.
    for iterator in [o for o in gc.get_objects() if issubclass(type(o), base)]:
        if getattr(iterator, "_ls", None) is None:
            instrument_running(iterator, step_for(iterator))


def release(*recorders: Recorder) -> None:
    """Make the iterators of these recorders plain again, by default all, as far as their workers
    allow."""
    for iterator in list(_live):
        step = getattr(iterator, "_ls", None)
        if not recorders or (step is not None and step.recorder in recorders):
            _release(iterator)


def _release(iterator: Any) -> None:
    iterator._ls = None
    if hasattr(iterator, "_dataset_fetcher"):
        iterator._dataset_fetcher = fetchers.unmark_collate(iterator._dataset_fetcher)
        base = base_of(type(iterator))
        if base is not None:
            iterator.__class__ = base
    # With workers the class stays: their envelopes must be opened as long as they come.
    _live.discard(iterator)
