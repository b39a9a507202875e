"""DataLoader iterators that look at the clock: subclasses of torch's (or torchdata's) own, made to
measure.

Each stays what it was, in name, type tests and behaviour; what it adds is a few clock readings
around calls to its base. Two rules hold everywhere: whatever the base raises passes through
untouched, and whatever goes wrong in our part is swallowed, reported once, and ends the recording
of that loader.
"""

from __future__ import annotations

import types
from typing import Any

from ...guard.error_origin import returning_errors, without_own
from ...guard.tracebacks import clean_wrapper
from ...native.form import hooks
from ..transit import fetchers
from ..transit.envelope import Envelope, opened
from .iteration import EXHAUSTED, FAILED, Iteration

# Of batches under way, so many times of drawing are kept where no envelope comes for them.
MOST_DRAWN = 4096

_classes: dict[tuple[type, bool], type] = {}


def instrumented(base: type, quiet: bool) -> type:
    """The measuring subclass of an iterator class.

    `quiet` leaves `__next__` itself alone and measures from just inside it: torch warns about a
    wrong `len()` of an iterable dataset with `stacklevel=2`, and that warning must name the user's
    line, not ours. The record_function around it, 1 to 2 µs, is then missing from `wait`.
    """
    key = (base, quiet)
    if key not in _classes:
        build = _multi if hasattr(base, "_process_data") else _single
        _classes[key] = build(base, quiet)
    return _classes[key]


def base_of(cls: type) -> type | None:
    """The class an instrumented class was made from, None for any other class."""
    return next((base for (base, _), made in _classes.items() if made is cls), None)


def _subclass(base: type, body: dict[str, Any]) -> type:
    names = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "_ls": None,
    }
    return type(base.__name__, (base,), {**names, **body})


def with_globals(function: Any, replaced: dict[str, Any]) -> Any:
    """A copy of a function that sees other objects under some global names; code, lines and
    warnings stay the same.

    KeyError where the function does not use one of the names.
    """
    for name in replaced:
        if name not in function.__code__.co_names:
            raise KeyError(name)
    # The registry decides which warnings were shown already: both copies must share it.
    function.__globals__.setdefault("__warningregistry__", {})
    copy = types.FunctionType(
        function.__code__,
        {**function.__globals__, **replaced},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


def on_end(s: Iteration, t0: int, error: BaseException) -> BaseException | None:
    """As the hooks call it: the base has raised. What it returns is raised in place of that."""
    without_own(error)
    try:
        s.ended(t0, EXHAUSTED if isinstance(error, StopIteration) else FAILED)
    except BaseException as newer:
        return without_own(newer)
    return None


def on_failure(iterator: Any, s: Iteration, error: BaseException) -> bool:
    """As the hooks call it: our part has failed, or was interrupted (False) by what must reach the
    loop."""
    if not s.recorder.failed(error):
        without_own(error)
        return False
    iterator._ls = None
    return True


def _single(base: Any, quiet: bool) -> type:
    # Code of torch's own, in a frame of its own: whoever looks at the stack finds torch's lines.
    next_data = fetchers.with_code_of_its_own(base._next_data)
    body = {
        "_next_index": hooks.drawing(fetchers.with_code_of_its_own(base._next_index)),
        "_next_data": next_data,
    }
    if quiet:
        body["_next_data"] = hooks.stepping(next_data, on_end, on_failure)
    else:
        body["__next__"] = hooks.stepping(
            fetchers.with_code_of_its_own(base.__next__), on_end, on_failure
        )
    return _subclass(base, body)


def _multi(base: Any, quiet: bool) -> type:
    base_process_data = base._process_data

    def not_opened(self: Any, data: Any, *rest: Any) -> Any:
        if type(data) is tuple:
            data = opened(data)  # received before its queue was made to open envelopes
        if type(data) is Envelope:
            return process_data(self, data, *rest)
        s = self._ls
        if s is not None and len(s.drawn) > MOST_DRAWN:
            s.drawn.clear()  # nothing fetches these times where workers are not measured
        clean_wrapper(data)
        return base_process_data(self, data, *rest)

    def again(self: Any, loader: Any, first_iter: bool = False, *args: Any, **kwargs: Any) -> None:
        s = self._ls
        if s is not None and not first_iter:
            try:
                if not s.begin(self._num_workers):
                    self._ls = None
            except BaseException as error:
                if not s.recorder.failed(error):
                    raise
                self._ls = None

    process_data = hooks.processing(base_process_data, Envelope, not_opened, on_failure)
    body = {
        "_next_index": hooks.indexing(fetchers.with_code_of_its_own(base._next_index)),
        "_process_data": process_data,
        "_reset": hooks.resetting(base._reset, returning_errors(again)),
    }
    name = "_next_data" if quiet else "__next__"
    next_ = base._next_data if quiet else fetchers.with_code_of_its_own(base.__next__)
    return _subclass(base, {**body, name: hooks.receiving(next_, on_end, on_failure)})
