"""Measuring subclasses of torch's and torchdata's DataLoader iterators, how iterators begin to
measure, and how they are made plain again.

The subclasses keep their name, type and behaviour, and read the clock around calls to their base.
The base's errors pass through untouched. An error of ours is swallowed, reported once, and ends the
recording of that loader.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...base import torch_parts
from ...guard.error_origin import returning_errors, without_own
from ...guard.tracebacks import clean_wrapper
from ...native.form import hooks
from ..transit.envelope import Envelope, unwrap
from ..transit.fetchers import copied, mark_collate, unmark_collate
from .iteration import EXHAUSTED, FAILED, Iteration, begun

if TYPE_CHECKING:
    from .recorder import Recorder

# Drawing times that are kept while no envelope takes them.
MOST_DRAWN = 4096

_WORKERS = (
    "the workers were started before the loader was watched: what happens inside them is not seen"
)

_classes: dict[tuple[type, bool], type] = {}
_live: weakref.WeakSet[Any] = weakref.WeakSet()


def instrumented(base: type, quiet: bool) -> type:
    """The measuring subclass of an iterator class.

    `quiet` measures inside `__next__` instead: there torch warns of a wrong `len()` of an iterable
    dataset with `stacklevel=2`, which must name the user's line. `wait` then lacks the
    record_function around it, 1 to 2 µs.
    """
    key = (base, quiet)
    if key not in _classes:
        build = _multi if hasattr(base, "_process_data") else _single
        _classes[key] = build(base, quiet)
    return _classes[key]


def is_quiet(loader_or_iterator: Any) -> bool:
    """Whether torch would warn in `__next__`, see `instrumented`."""
    return getattr(loader_or_iterator, "_IterableDataset_len_called", None) is not None


def _subclass(base: type, body: dict[str, Any]) -> type:
    names = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "_ls": None,
    }
    return type(base.__name__, (base,), {**names, **body})


def on_end(s: Iteration, t0: int, error: BaseException) -> BaseException | None:
    """The base has raised. Returns an error to raise in its place."""
    without_own(error)
    try:
        s.ended(t0, EXHAUSTED if isinstance(error, StopIteration) else FAILED)
    except BaseException as newer:
        return without_own(newer)
    return None


def on_failure(iterator: Any, s: Iteration, error: BaseException) -> bool:
    """Our part has failed, or (False) was interrupted by an error that must reach the loop."""
    if not s.recorder.failed(error):
        without_own(error)
        return False
    iterator._ls = None
    return True


def _measured(base: Any, quiet: bool) -> tuple[str, Any]:
    """The method to measure."""
    name = "_next_data" if quiet else "__next__"
    return name, copied(getattr(base, name))


def _single(base: Any, quiet: bool) -> type:
    # Copies of torch's own code: the stack shows torch's lines.
    body = {"_next_data": copied(base._next_data)}
    name, original = _measured(base, quiet)
    body[name] = hooks.stepping(original, on_end, on_failure)
    return _subclass(base, {**body, "_next_index": hooks.drawing(copied(base._next_index))})


def _multi(base: Any, quiet: bool) -> type:
    base_process_data = base._process_data

    def not_opened(self: Any, data: Any, *rest: Any) -> Any:
        if type(data) is tuple:
            data = unwrap(data)  # received before its queue returned envelopes
        if type(data) is Envelope:
            return process_data(self, data, *rest)
        s = self._ls
        if s is not None and len(s.drawn) > MOST_DRAWN:
            s.drawn.clear()  # workers that are not measured take none
        clean_wrapper(data)
        return base_process_data(self, data, *rest)

    def again(self: Any, loader: Any, first_iter: bool = False, *args: Any, **kwargs: Any) -> None:
        if self._ls is not None and not first_iter:
            self._ls = begun(self._ls, lambda step: step.begin(self._num_workers))

    process_data = hooks.processing(base_process_data, Envelope, not_opened, on_failure)
    name, original = _measured(base, quiet)
    return _subclass(
        base,
        {
            "_next_index": hooks.indexing(copied(base._next_index)),
            "_process_data": process_data,
            "_reset": hooks.resetting(base._reset, returning_errors(again)),
            name: hooks.receiving(original, on_end, on_failure),
        },
    )


# Iterators that measure.


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
        iterator._dataset_fetcher = mark_collate(fetcher, step, marks_end=True)
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
    if not is_measuring(iterator):
        iterator.__class__ = instrumented(kind, is_quiet(iterator))
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
            iterator._dataset_fetcher = unmark_collate(iterator._dataset_fetcher)
            iterator.__class__ = type(iterator).__mro__[1]
