"""The hooks in a worker, in Python: `src/worker_side.h` and `making.h` say the same in C."""

from __future__ import annotations

from typing import Any

from ..base.clock import now_ns
from .layout import MARK, META_BYTES, SENT, SENT_AT

# The mark lies in the last bytes of a message; only so much is searched.
_TAIL = META_BYTES + 64


def working(begin: Any, /) -> Any:
    """What a worker process runs. `begin` gives (loop, its arguments, what to call when it has
    ended)."""

    def work(*args: Any, **kwargs: Any) -> Any:
        begun = begin(*args, **kwargs)
        if isinstance(begun, BaseException):
            raise begun
        loop, given, end = begun
        try:
            return loop(*given)
        finally:
            end()

    return work


def following(base: Any, then: Any, /) -> Any:
    """Any call: `then` is given its result, and gives what is returned."""

    def follow(*args: Any, **kwargs: Any) -> Any:
        result = then(base(*args, **kwargs))
        if isinstance(result, BaseException):
            raise result
        return result

    return follow


def taking(get: Any, timings: Any, begin: Any, /) -> Any:
    """A task arrives: `begin` notes it in `timings`, and gives the indices to hand on."""

    def take(*args: Any, **kwargs: Any) -> Any:
        message = get(*args, **kwargs)
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
            return message[0], begin(message[1])
        return message

    return take


def putting(put: Any, timings: Any, carefully: Any, who: tuple[Any, ...], /) -> Any:
    """A batch leaves. C is quick with one that is not looked at in detail; in Python none is
    quicker than the careful way."""
    return carefully


def sending(send: Any, empty_bytes: int, /) -> Any:
    """`_send_bytes`, used by the queue's one feeder thread: fills in envelopes as they leave the
    worker."""
    t_free = 0  # since when that thread has nothing else to do

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
