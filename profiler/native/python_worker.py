"""The hooks of a worker, in Python. In C they are in `src/worker_side.h` and `making.h`."""

from __future__ import annotations

from typing import Any

from ..base.clock import now_ns
from .layout import MARK, META_BYTES, SENT, SENT_AT
from .python_iterator import or_raise

# The mark is near the end of a message; only this much is searched.
_TAIL = META_BYTES + 64


def working(begin: Any, /) -> Any:
    """What a worker process runs. `begin` returns (loop, its arguments, what to call at its
    end)."""

    def work(*args: Any, **kwargs: Any) -> Any:
        loop, given, end = or_raise(begin(*args, **kwargs))
        try:
            return loop(*given)
        finally:
            end()

    return work


def following(base: Any, then: Any, /) -> Any:
    """Any call: `then` replaces its result."""

    def follow(*args: Any, **kwargs: Any) -> Any:
        return or_raise(then(base(*args, **kwargs)))

    return follow


def taking(get: Any, timings: Any, begin: Any, /) -> Any:
    """A task arrives: `begin` notes it in `timings`, and returns the indices to hand on."""

    def take(*args: Any, **kwargs: Any) -> Any:
        message = get(*args, **kwargs)
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
            return message[0], begin(message[1])
        return message

    return take


def putting(put: Any, timings: Any, carefully: Any, who: tuple[Any, ...], /) -> Any:
    """A batch leaves. C has a fast path for batches without detail; Python always takes the careful
    one."""
    return carefully


def sending(send: Any, empty_bytes: int, /) -> Any:
    """`_send_bytes`, called by the queue's feeder thread: fills in envelopes as they leave."""
    t_free = 0  # since when that thread is idle

    def send_filled(*args: Any, **kwargs: Any) -> Any:
        nonlocal t_free
        try:
            _fill_in(args[0], t_free, empty_bytes)
        except Exception:  # sent as it is
            t_free = 0
        result = send(*args, **kwargs)
        t_free = now_ns()
        return result

    return send_filled


def _fill_in(message: memoryview, t_free: int, empty_bytes: int) -> None:
    size = message.nbytes
    start = max(0, size - _TAIL)
    found = message[start:].tobytes().rfind(MARK)
    if found < 0:
        return
    at = start + found + SENT_AT
    t_put, _, _ = SENT.unpack_from(message, at)
    now = now_ns()
    SENT.pack_into(message, at, now - max(t_put, t_free), now, size - empty_bytes)
