"""The envelope: a batch on its way from worker to main, carrying its own times through the DataLoader's own queue.

    worker, main thread    `sealed(batch, times)` is put on the queue: a plain tuple, which pickles at no extra cost
    worker, feeder thread  `fill_in` sees the pickled bytes, and writes pack time, length and time of sending into them
                           just before they go
    main (or pin thread)   `opening` wraps the queue's receiving end: it looks at the clock when the bytes have arrived
                           and when the batch is rebuilt, and hands on an `Envelope`
    pin thread             torch calls `pin_memory()` on anything that has one

Nothing is matched by guess and no second channel is needed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ..base.clock import now_ns
from ..base.torch_parts import pinner
from ..native import form
from .fetchers import ALWAYS_AT_FIRST, ALWAYS_DETAILED_NS, SAMPLE_EVERY

# Found again in the pickled bytes by this mark; sixteen random bytes do not occur by chance.
_MARK = bytes.fromhex("9f1c64e25b7a4d0e8833d1f6a90b52c7")
_SEAL = _MARK[:8]

# Written by the worker: task, t_fetch, fetch, collate, fetch_cpu, collate_cpu, bytes, own (ns and bytes),
# tensors, pid, worker id, fastest, median and slowest sample (ns).
TIMES = struct.Struct("@8q3i3f")
# Written last, over the pickled bytes: pack (until then the time of the put), time of sending, length.
SENT = struct.Struct("@3q")
_TIMES_AT = len(_MARK)
_SENT_AT = len(_MARK) + TIMES.size
_META_BYTES = _SENT_AT + SENT.size

# The mark lies in the last bytes of the message; only so much is searched.
_TAIL = _META_BYTES + 64


native = form.envelopes(TIMES.format, SENT.format, _MARK, _SEAL, SAMPLE_EVERY, ALWAYS_AT_FIRST, ALWAYS_DETAILED_NS)


class _Parcel:
    __slots__ = ("pack_ns", "payload", "pickled_bytes", "pin_ns", "t_sent_ns", "times", "unpack_ns")

    def __init__(self, payload: Any, meta: bytes, unpack_ns: int) -> None:
        self.payload = payload
        self.times = meta[_TIMES_AT:_SENT_AT]
        self.pack_ns, self.t_sent_ns, self.pickled_bytes = SENT.unpack_from(meta, _SENT_AT)
        self.unpack_ns = unpack_ns
        self.pin_ns = -1


if not TYPE_CHECKING and native is not None:
    _Parcel = native.Parcel


class Envelope(_Parcel):
    """A batch and its times (ns), in main. `times` is what `TIMES` packs."""

    __slots__ = ()

    def pin_memory(self, *device: object) -> Envelope:
        """Called by torch's pin thread on the way to main."""
        pin_memory = pinner()
        start = now_ns()
        self.payload = pin_memory(self.payload, *device)
        self.pin_ns = now_ns() - start
        return self


def sealed(batch: Any, times: bytes) -> tuple[bytes, Any, bytes]:
    """What a worker puts on the queue in place of a batch.

    A tuple and bytes: an object of a class of ours would cost multiprocessing's pickler a search through its reducers
    in Python, in a thread that keeps the worker from working meanwhile.
    """
    return _SEAL, batch, _MARK + times + SENT.pack(now_ns(), -1, -1)


def opened(data: Any, unpack_ns: int = -1) -> Any:
    """The `Envelope` of a sealed batch; anything else as it is."""
    if type(data) is tuple and len(data) == 3 and type(data[0]) is bytes and data[0] == _SEAL:
        return Envelope(data[1], data[2], unpack_ns)
    return data


def opening(queue: Any, stateful: bool) -> None:
    """Make this queue hand on envelopes, in this process. `stateful`: torchdata's messages hold a state beside."""
    receive, get = queue._recv_bytes, queue.get
    if native is not None and not stateful:
        queue._recv_bytes = arrival = native.arriving(receive)
        queue.get = native.getting(get, arrival, Envelope)
        return
    t_arrived = 0

    def recv_bytes(*args: Any) -> Any:
        nonlocal t_arrived
        message = receive(*args)
        t_arrived = now_ns()
        return message

    def get_opened(*args: Any, **kwargs: Any) -> Any:
        message = get(*args, **kwargs)
        unpack_ns = now_ns() - t_arrived
        if type(message) is tuple and len(message) == 2:
            task, content = message
            if not stateful:
                return task, opened(content, unpack_ns)
            if type(content) is tuple:
                return task, (opened(content[0], unpack_ns), *content[1:])
        return message

    queue._recv_bytes = recv_bytes
    queue.get = get_opened


def sender(send: Any) -> Any:
    """`send`, made to fill in envelopes on their way."""
    return Sender(send) if native is None else native.sending(send, empty_message_bytes())


class Sender:
    """Fills in envelopes as they leave the worker; used by the queue's one feeder thread."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self._empty_bytes = empty_message_bytes()
        self._t_free = 0  # since when the feeder thread has nothing else to do

    def __call__(self, message: Any) -> Any:
        try:
            self._fill_in(message)
        except Exception:  # sent as it is
            self._t_free = 0
        result = self._send(message)
        self._t_free = now_ns()
        return result

    def _fill_in(self, message: memoryview) -> None:
        size = message.nbytes
        start = max(0, size - _TAIL)
        found = message[start:].tobytes().rfind(_MARK)
        if found < 0:
            return
        at = start + found + _SENT_AT
        t_put, _, _ = SENT.unpack_from(message, at)
        now = now_ns()
        SENT.pack_into(message, at, now - max(t_put, self._t_free), now, size - self._empty_bytes)


def empty_message_bytes() -> int:
    """Bytes that an envelope adds to a message, pickled as multiprocessing does it."""
    from multiprocessing.reduction import ForkingPickler

    blank = TIMES.pack(*[0] * 14)
    return len(ForkingPickler.dumps((0, sealed(None, blank)))) - len(ForkingPickler.dumps((0, None)))
