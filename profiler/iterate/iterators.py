"""DataLoader iterators that look at the clock: subclasses of torch's (or torchdata's) own, made to measure.

Each stays what it was, in name, type tests and behaviour; what it adds is a few clock readings around calls to its
base. Two rules hold everywhere: whatever the base raises passes through untouched, and whatever goes wrong in our part
is swallowed, reported once, and ends the recording of that loader.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from ..base.clock import now_ns
from ..base.schema import BATCH, RECORD_BYTES
from ..guard.error_origin import returning_errors, without_own
from ..guard.tracebacks import clean_wrapper, drop_inner_frames
from ..lanes.lane import WINDOW_AT
from ..native import form
from ..transit import fetchers
from ..transit.envelope import Envelope, opened
from ..transit.envelope import native as native_envelopes
from .recorder import EXHAUSTED, FAILED, Iteration, failed, pack_head

# Of the batches of a lane, every so many are looked at in detail: up to the last number, and after it.
_often, _rarely, _until = _SAMPLING = fetchers.SAMPLE_EVERY, fetchers.SAMPLE_RARELY, fetchers.OFTEN_UNTIL
_native = form.records(WINDOW_AT, BATCH, _SAMPLING)
_native_queues = _native if native_envelopes is not None else None

# Of batches under way, so many times of drawing are kept where no envelope comes for them.
MOST_DRAWN = 4096

_classes: dict[tuple[type, bool], type] = {}


def instrumented(base: type, quiet: bool) -> type:
    """The measuring subclass of an iterator class.

    `quiet` leaves `__next__` itself alone and measures from just inside it: torch warns about a wrong `len()` of an
    iterable dataset with `stacklevel=2`, and that warning must name the user's line, not ours. The record_function
    around it, 1 to 2 µs, is then missing from `wait`.
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
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__, "_ls": None}
    return type(base.__name__, (base,), {**names, **body})


def with_globals(function: Any, replaced: dict[str, Any]) -> Any:
    """A copy of a function that sees other objects under some global names; code, lines and warnings stay the same.

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


def _stepping(base_call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`__next__` (or `_next_data`) in the process that makes the batches itself. The hottest path there is: everything
    that not every batch needs is behind `special`."""
    if _native is not None:
        return _native.stepping(base_call, _on_end, _on_failure)  # type: ignore[no-any-return]

    def step(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base_call(self)
        t0 = now_ns()
        if s.device is not None:
            s.device.entered()
        try:
            data = base_call(self)
        except StopIteration:
            s.ended(t0, EXHAUSTED)
            raise
        except BaseException as error:
            s.ended(t0, FAILED)
            drop_inner_frames(error)
            raise
        t1 = now_ns()
        try:
            lane = s.lane
            n = lane.count
            if n >= lane.capacity:
                n = lane.roll()
            pack_head(
                lane.buf, WINDOW_AT + n * RECORD_BYTES, lane.first + n, t0, t1 - t0, s.t_fetch - s.t_index,
                s.t_collate - s.t_fetch, s.t_collated - s.t_collate, s.samples, s.epoch,
            )  # fmt: skip
            if s.special:
                s.finish(lane, n, data, t1, t1 - t0, self._pin_memory)
            n += 1
            lane.committed[0] = n
            lane.count = n
            seq = lane.first + n - 1
            if not seq & ((_often if seq <= _until else _rarely) - 1):
                s.special = s.detailed = True
        except BaseException as error:
            if not failed(error, s.recorder):
                raise
            self._ls = None
        return data

    return step


def _on_end(s: Iteration, t0: int, error: BaseException) -> BaseException | None:
    """As the compiled form calls it: the base has raised. What it returns is raised in place of that."""
    exhausted = isinstance(error, StopIteration)
    if not exhausted:
        without_own(error)
    try:
        s.ended(t0, EXHAUSTED if exhausted else FAILED)
    except BaseException as newer:
        return without_own(newer)
    return None


def _on_failure(iterator: Any, s: Iteration, error: BaseException) -> bool:
    """As the compiled form calls it: our part has failed, or was interrupted (False) by what must reach the loop."""
    if not failed(error, s.recorder):
        without_own(error)
        return False
    iterator._ls = None
    return True


def _single(base: Any, quiet: bool) -> type:
    # Code of torch's own, in a frame of its own: whoever looks at the stack finds torch's lines.
    base_next_index = fetchers.with_code_of_its_own(base._next_index)
    next_data = fetchers.with_code_of_its_own(base._next_data)

    def _next_index(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base_next_index(self)
        t0 = now_ns()
        index = base_next_index(self)
        s.samples = len(index) if type(index) is list else -1 if self._auto_collation else 1
        if s.detailed:
            index = s.begin_detail(index, self)
        s.t_index = t0
        s.t_fetch = now_ns()
        return index

    body: dict[str, Any] = {
        "_next_index": _next_index if _native is None else _native.drawing(base_next_index),
        "_next_data": _stepping(next_data) if quiet else next_data,
    }
    if not quiet:
        body["__next__"] = _stepping(fetchers.with_code_of_its_own(base.__next__))
    return _subclass(base, body)


def _multi(base: Any, quiet: bool) -> type:
    base_next_index = fetchers.with_code_of_its_own(base._next_index)
    base_process_data = base._process_data
    base_reset = base._reset

    def _next_index(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base_next_index(self)
        t0 = now_ns()
        index = base_next_index(self)
        samples = len(index) if type(index) is list else -1 if self._auto_collation else 1
        s.drawn[self._send_idx] = (now_ns() - t0, samples)
        if s.looks is not None:
            s.looks.drawn(index, self._send_idx)
        return index

    def _process_data(self: Any, data: Any, *rest: Any) -> Any:
        if type(data) is tuple:
            data = opened(data)  # received before its queue was made to open envelopes
        if type(data) is Envelope:
            s = self._ls
            if s is not None:
                s.taken = now_ns()
                s.envelope = data
            payload, data.payload = data.payload, None
            return base_process_data(self, payload, *rest)
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
                if not failed(error, s.recorder):
                    raise
                self._ls = None

    def _reset(self: Any, *args: Any, **kwargs: Any) -> None:
        again(self, *args, **kwargs)
        base_reset(self, *args, **kwargs)

    body: dict[str, Any] = {"_next_index": _next_index, "_process_data": _process_data, "_reset": _reset}
    if _native_queues is not None:
        body["_reset"] = _native_queues.resetting(base_reset, returning_errors(again))
        body["_next_index"] = _native_queues.indexing(base_next_index)
        body["_process_data"] = _native_queues.processing(base_process_data, Envelope, _process_data)
    if quiet:
        body["_next_data"] = _receiving(base._next_data)
    else:
        body["__next__"] = _receiving(fetchers.with_code_of_its_own(base.__next__))
    return _subclass(base, body)


def _receiving(base_call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`__next__` (or `_next_data`) of an iterator with workers: most of the record comes in the envelope."""
    if _native_queues is not None:
        return _native_queues.receiving(base_call, _on_end, _on_failure)  # type: ignore[no-any-return]

    def step(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base_call(self)
        t0 = now_ns()
        if s.device is not None:
            s.device.entered()
        try:
            data = base_call(self)
        except StopIteration:
            s.ended(t0, EXHAUSTED)
            raise
        except BaseException as error:
            s.ended(t0, FAILED)
            drop_inner_frames(error)
            raise
        t1 = now_ns()
        try:
            lane = s.lane
            n = lane.count
            if n >= lane.capacity:
                n = lane.roll()
            envelope, s.envelope = s.envelope, None
            fetch = collate = task = -1
            if envelope is not None:
                outstanding = self._tasks_outstanding
                fetch, collate, task = s.opened(lane, n, envelope, outstanding, _ready(self, outstanding))
            index_ns, samples = s.drawn.pop(task, (-1, -1))
            pack_head(
                lane.buf, WINDOW_AT + n * RECORD_BYTES, lane.first + n, t0, t1 - t0, index_ns,
                fetch, collate, samples, s.epoch,
            )  # fmt: skip
            if s.special:
                s.finish_opened(lane, n, data, t1)
            n += 1
            lane.committed[0] = n
            lane.count = n
            seq = lane.first + n - 1
            if not seq & ((_often if seq <= _until else _rarely) - 1):
                s.special = True
        except BaseException as error:
            if not failed(error, s.recorder):
                raise
            self._ls = None
        return data

    return step


def _ready(iterator: Any, outstanding: int) -> int:
    """Batches that are finished and wait: in the queues, and set aside because they came out of order. -1: unknown."""
    try:
        waiting = iterator._worker_result_queue.qsize()
        if iterator._pin_memory:
            waiting += iterator._data_queue.qsize()
        if getattr(iterator, "_in_order", True):
            waiting += max(0, iterator._send_idx - iterator._rcvd_idx - outstanding)
        return int(waiting)
    except (NotImplementedError, AttributeError, OSError):  # macOS has no sem_getvalue
        return -1
