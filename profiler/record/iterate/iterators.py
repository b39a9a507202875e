"""Measuring subclasses of torch's and torchdata's DataLoader iterators.

They keep their name, type and behaviour, and read the clock around calls to their base. The base's
errors pass through untouched. An error of ours is swallowed, reported once, and ends the recording
of that loader.
"""

from __future__ import annotations

from typing import Any

from ...guard.error_origin import returning_errors, without_own
from ...guard.tracebacks import clean_wrapper
from ...native.form import hooks
from ..transit.envelope import Envelope, unwrap
from ..transit.fetchers import copied
from .iteration import EXHAUSTED, FAILED, Iteration, begun

# Drawing times that are kept while no envelope takes them.
MOST_DRAWN = 4096

_classes: dict[tuple[type, bool], type] = {}


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


def base_of(cls: type) -> type | None:
    """The base of a measuring class, None for other classes."""
    return next((base for (base, _), made in _classes.items() if made is cls), None)


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
