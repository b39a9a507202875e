"""Iterators that measure: how they begin to, and how they are made plain again."""

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


def is_measuring(iterator: Any) -> bool:
    """Whether this iterator has a measuring class."""
    return hasattr(type(iterator), "_ls")


def measured(iterator: Any, step: Iteration, prepare: Callable[[Any, Iteration], None]) -> Any:
    """The iterator, prepared to measure. If that fails it stays, and measures nothing."""
    try:
        prepare(iterator, step)
    except BaseException as error:
        if not step.recorder.failed(error):
            raise
        if is_measuring(iterator):
            iterator._ls = None
    return iterator


def mark_parts(iterator: Any, step: Iteration) -> bool:
    """Mark the fetcher, or record the workers, of a measuring iterator. Whether there are any."""
    _live.add(iterator)
    if hasattr(iterator, "_dataset_fetcher"):
        fetcher = iterator._dataset_fetcher
        iterator._dataset_fetcher = fetchers.mark_collate(fetcher, step, marks_end=True)
    workers = getattr(iterator, "_workers", None)
    if workers:
        step.recorder.workers_started(step.epoch, [worker.pid for worker in workers])
    return bool(workers)


def instrument_running(iterator: Any, step: Iteration) -> Any:
    """Make a running iterator measure from its next batch on, unless its kind is unknown. Its
    workers run torch's plain loop, so the inside of those is not measured."""
    return measured(iterator, step, _instrument)


def _instrument(iterator: Any, step: Iteration) -> None:
    kind = type(iterator)
    if (
        not issubclass(kind, torch_parts.iterator_base())
        or getattr(iterator, "_ls", None) is not None
        or (not is_measuring(iterator) and torch_parts.missing_of_iterator(kind))
    ):
        return
    if base_of(kind) is None:
        quiet = getattr(iterator, "_IterableDataset_len_called", None) is not None
        iterator.__class__ = instrumented(kind, quiet)
    if step.rows is not None or step.begin(iterator._num_workers):
        iterator._ls = step
        if mark_parts(iterator, step):
            step.recorder.note(_WORKERS, "fetch", "collate", "pack", "queued", "unpack", "pin")


def instrument_all_running(step_for: Callable[[Any], Iteration]) -> None:
    """Make every DataLoader iterator of this process measure."""
    base = torch_parts.iterator_base()
    # Not isinstance: asking foreign objects for `__class__` can run their code.
    for iterator in [o for o in gc.get_objects() if issubclass(type(o), base)]:
        if getattr(iterator, "_ls", None) is None:
            instrument_running(iterator, step_for(iterator))


def release(recorders: list[Recorder] | None = None) -> None:
    """Make the iterators of these recorders plain again, by default all, as far as their workers
    allow."""
    for iterator in list(_live):
        step = getattr(iterator, "_ls", None)
        if recorders is not None and (step is None or step.recorder not in recorders):
            continue
        iterator._ls = None
        _live.discard(iterator)
        # With workers the class stays: their envelopes must be opened as long as they come.
        if hasattr(iterator, "_dataset_fetcher"):
            iterator._dataset_fetcher = fetchers.unmark_collate(iterator._dataset_fetcher)
            iterator.__class__ = base_of(type(iterator)) or type(iterator)
