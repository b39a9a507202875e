"""The hooks of the process that iterates, in Python. In C they are in `src/stepping.h`, `local.h`,
`received.h`, `main_side.h` and `making.h`.

Each hook works around a call to its `base`. The recorder's functions that may raise the user's
errors (`begin`, `done`, `before`) return such an error, and the hook raises it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.batch_record import HEAD, RECEIVED
from ..base.clock import now_ns
from ..base.own_frames import drop_inner_frames
from ..base.schema import RECORD_BYTES, WINDOW_AT
from ..base.torch_parts import samples_of
from .layout import OFTEN_UNTIL, SAMPLE_EVERY, SAMPLE_RARELY, SEAL, TIMES

_put_head, _put_received = HEAD.put, RECEIVED.put
_unpack_times = TIMES.unpack
_OFTEN, _RARELY = SAMPLE_EVERY - 1, SAMPLE_RARELY - 1
_MOST = (1 << 15) - 1  # that a record can count
_NAN = float("nan")

OnEnd = Callable[[Any, int, BaseException], "BaseException | None"]
OnFailure = Callable[[Any, Any, BaseException], bool]


def stepping(base: Any, on_end: OnEnd, on_failure: OnFailure, /) -> Any:
    """`__next__` of an iterator that makes its batches in this process."""
    return _recording(base, on_end, on_failure, None)


def receiving(base: Any, on_end: OnEnd, on_failure: OnFailure, /) -> Any:
    """`__next__` of an iterator with workers: most of the record comes in the envelope."""
    return _recording(base, on_end, on_failure, _put_from_worker)


def _recording(base: Any, on_end: OnEnd, on_failure: OnFailure, put_received: Any) -> Any:
    """The hottest path: what only some batches need is behind `special`."""

    def step(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base(self)
        t0 = now_ns()
        if s.device is not None:
            s.device.entered()
        try:
            data = base(self)
        except BaseException as error:
            newer = on_end(s, t0, error)
            raise error if newer is None else newer  # noqa: B904
        t1 = now_ns()
        try:
            lane = s.lane
            n = lane.count
            if n >= lane.capacity:
                n = lane.roll()
            at, seq = WINDOW_AT + n * RECORD_BYTES, lane.first + n
            if put_received is not None:
                put_received(self, s, lane, n, at, t0, t1 - t0)
                if s.special:
                    s.finish_opened(lane, n, data, t1)
            else:
                _put_head(
                    lane.buf,
                    at,
                    seq,
                    t0,
                    t1 - t0,
                    s.t_fetch - s.t_index,
                    s.t_collate - s.t_fetch,
                    s.t_collated - s.t_collate,
                    s.samples,
                    s.epoch,
                )
                if s.special:
                    s.finish(lane, n, data, t1, t1 - t0, self._pin_memory)
            if s.device is not None:
                s.device.handed_over(lane, n, data)
            n += 1
            lane.committed[0] = n
            lane.count = n
            if not seq & (_OFTEN if seq <= OFTEN_UNTIL else _RARELY):
                s.special = s.detailed = True
        except BaseException as error:
            if not on_failure(self, s, error):
                raise error
        return data

    return _instead_of(base, step)


def _put_from_worker(
    iterator: Any, s: Any, lane: Any, n: int, at: int, t0: int, wait_ns: int
) -> None:
    seq = lane.first + n
    envelope, s.envelope = s.envelope, None
    if envelope is None:  # the worker sent none
        _put_head(lane.buf, at, seq, t0, wait_ns, -1, -1, -1, -1, s.epoch)
        return
    times = _unpack_times(envelope.times)
    task, t_fetch, fetch, collate, *cpu, size, _, tensors, pid, worker = times[:-3]
    index_ns, samples = s.drawn.pop(task, (-1, -1))
    outstanding, ready = iterator._tasks_outstanding, s.waiting
    if ready >= 0 and getattr(iterator, "_in_order", True):  # others came early and were set aside
        ready += max(0, iterator._send_idx - iterator._rcvd_idx - outstanding)
    own = _NAN if n else lane.moved_ns or _NAN  # of moving on to this window
    pack = queued = -1
    if envelope.t_sent_ns > 0:
        pack = envelope.pack_ns
        unpacking_ns = envelope.unpack_ns + max(0, envelope.pin_ns)
        queued = max(0, s.taken - envelope.t_sent_ns - unpacking_ns)
    _put_received(
        lane.buf,
        at,
        seq,
        t0,
        wait_ns,
        index_ns,
        fetch,
        collate,
        samples,
        s.epoch,
        -1,
        t_fetch,
        pack,
        queued,
        envelope.unpack_ns,
        envelope.pin_ns,
        envelope.pickled_bytes,
        task,
        pid,
        worker,
        min(outstanding, _MOST),
        min(ready, _MOST),
        -1,
        *cpu,
        size,
        tensors,
        own,
        *times[-3:],
    )


def making(base: Any, begin: Any, done: Any, /) -> Any:
    """`_get_iterator(loader)`. `begin` returns (maker, step), or None for an unwatched loader.
    `done` receives what the maker made, None if it raised, and returns the iterator."""

    def _get_iterator(self: Any) -> Any:
        begun = or_raise(begin(self))
        if begun is None:
            return base(self)
        make, step = begun
        try:
            made = make(self)
        except BaseException as error:
            or_raise(done(None, step))
            drop_inner_frames(error)
            raise
        return or_raise(done(made, step))

    return _instead_of(base, _get_iterator)


def resetting(base: Any, before: Any, /) -> Any:
    """`_reset(iterator, loader, first_iter=False)`"""

    def _reset(*args: Any, **kwargs: Any) -> Any:
        or_raise(before(*args, **kwargs))
        return base(*args, **kwargs)

    return _instead_of(base, _reset)


def drawing(base: Any, /) -> Any:
    """`_next_index` without workers: draws the indices and prepares fetching."""

    def _next_index(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base(self)
        t0 = now_ns()
        index = base(self)
        s.samples = samples_of(index, self._auto_collation)
        if s.detailed:
            index = s.begin_detail(index, self)
        s.t_index = t0
        s.t_fetch = now_ns()
        return index

    return _instead_of(base, _next_index)


def fetching(base: Any, /) -> Any:
    """A fetcher's `fetch`: marks its end."""

    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        data = base(self, possibly_batched_index)
        self._loaderscope_timings.t_collated = now_ns()
        return data

    return _instead_of(base, fetch)


def indexing(base: Any, /) -> Any:
    """`_next_index` with workers: the time of drawing is kept by task until its batch comes."""

    def _next_index(self: Any) -> Any:
        s = self._ls
        if s is None:
            return base(self)
        t0 = now_ns()
        index = base(self)
        took = now_ns() - t0
        s.drawn[self._send_idx] = took, samples_of(index, self._auto_collation)
        if s.looks is not None:
            s.looks.drawn(index, self._send_idx)
        return index

    return _instead_of(base, _next_index)


def processing(base: Any, envelope: Any, otherwise: Any, on_failure: OnFailure, /) -> Any:
    """`_process_data(self, data, *rest)`: unwraps an envelope; anything else goes to
    `otherwise`."""

    def _process_data(self: Any, data: Any, *rest: Any) -> Any:
        if type(data) is not envelope:
            return otherwise(self, data, *rest)
        s = self._ls
        if s is not None:
            s.taken = now_ns()
            s.envelope = data
            try:
                s.waiting = _waiting_in_queues(self)
            except BaseException as error:
                s.envelope = None
                if not on_failure(self, s, error):
                    raise error
        # The envelope outlives the call, and must not keep the batch.
        payload, data.payload = data.payload, None
        return base(self, payload, *rest)

    return _instead_of(base, _process_data)


def _waiting_in_queues(iterator: Any) -> int:
    """Finished batches in the queues, -1 if unknown.

    Read as soon as a batch is taken. Later the loop may keep the GIL from the thread that hands a
    worker its next task.
    """
    waiting = _length(iterator._worker_result_queue)
    if waiting >= 0 and iterator._pin_memory:
        pinned = _length(iterator._data_queue)
        return waiting + pinned if pinned >= 0 else -1
    return waiting


def _length(queue: Any) -> int:
    """`qsize` of a queue of multiprocessing or of `queue`, -1 if unknown (macOS)."""
    semaphore = getattr(queue, "_sem", None)
    try:
        if semaphore is None:
            return len(queue.queue)
        return int(queue._maxsize - semaphore._semlock._get_value())
    except (NotImplementedError, AttributeError):
        return -1


def arriving(receive: Any, /) -> Any:
    """`_recv_bytes`: `t_last` is when the last message arrived."""

    def recv_bytes(*args: Any, **kwargs: Any) -> Any:
        message = receive(*args, **kwargs)
        recv_bytes.t_last = now_ns()  # type: ignore[attr-defined]
        return message

    recv_bytes.t_last = 0  # type: ignore[attr-defined]
    return recv_bytes


def opened(data: Any, unpack_ns: int, envelope: Any, /) -> Any:
    """The envelope of a wrapped batch; anything else unchanged."""
    if type(data) is tuple and len(data) == 3 and type(data[0]) is bytes and data[0] == SEAL:
        return envelope(data[1], data[2], unpack_ns)
    return data


def getting(get: Any, arrival: Any, envelope: Any, /) -> Any:
    """`get`: returns messages whose batch is in an envelope."""

    def get_opened(*args: Any, **kwargs: Any) -> Any:
        message = get(*args, **kwargs)
        unpack_ns = now_ns() - arrival.t_last
        if type(message) is tuple and len(message) == 2:
            return message[0], opened(message[1], unpack_ns, envelope)
        return message

    return get_opened


def or_raise(result: Any) -> Any:
    """The result of a call that returns its error instead of raising it."""
    if isinstance(result, BaseException):
        raise result
    return result


def _instead_of(base: Any, hook: Any) -> Any:
    hook.__wrapped__ = base
    hook.__qualname__ = getattr(base, "__qualname__", hook.__qualname__)
    return hook
