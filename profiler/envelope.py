"""The envelope: a batch on its way from worker to main, carrying its own times through the DataLoader's own queue.

    worker, main thread    Envelope(batch, times of fetch and collate)   put on the queue
    worker, feeder thread  pickling calls `__reduce__`: the clock starts; `FilledConnection.send` sees the finished
                           bytes, and writes pack time, length and time of sending into them before they go
    main (or pin thread)   unpickling first calls the clock, then rebuilds the batch, then calls `_open`
    pin thread             torch calls `pin_memory()` on anything that has one

Nothing is matched by guess and no second channel is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from .clock import now_ns

# Found again in the pickled bytes by this mark; sixteen random bytes do not occur by chance.
_MARK = bytes.fromhex("9f1c64e25b7a4d0e8833d1f6a90b52c7")

# Written by the worker: task, t_fetch, fetch, collate, fetch_cpu, collate_cpu, bytes, own (ns and bytes),
# tensors, pid, worker id, fastest, median and slowest sample (ns).
TIMES = struct.Struct("@qqqqqqqqiiifff")
# Written last, over the pickled bytes: pack (until then the time packing began), time of sending, length.
SENT = struct.Struct("@qqq")
_META_BYTES = len(_MARK) + TIMES.size + SENT.size
_TIMES_AT = len(_MARK)
_SENT_AT = len(_MARK) + TIMES.size

# The mark lies in the last bytes of the message; only so much is searched.
_TAIL = _META_BYTES + 64


class _Stamp:
    """Pickles to a call of the clock: unpickling it gives the time at which it was unpickled."""

    def __reduce__(self) -> tuple[Callable[[], int], tuple[()]]:
        return now_ns, ()


_STAMP = _Stamp()


class Envelope:
    """A batch and its times (ns). `times` is what `TIMES` packs; `sent` what `SENT` packs, known in main only."""

    __slots__ = ("pack_ns", "payload", "pickled_bytes", "pin_ns", "t_sent_ns", "times", "unpack_ns")

    def __init__(self, payload: Any, times: bytes) -> None:
        self.payload = payload
        self.times = times
        self.pin_ns = -1
        self.unpack_ns = self.pack_ns = self.t_sent_ns = self.pickled_bytes = -1

    def __reduce__(self) -> tuple[Callable[..., Envelope], tuple[object, ...]]:
        return _open, (_STAMP, self.payload, _MARK + self.times + SENT.pack(now_ns(), -1, -1))

    def pin_memory(self, *device: object) -> Envelope:
        """Called by torch's pin thread on the way to main."""
        from torch.utils.data._utils.pin_memory import pin_memory

        start = now_ns()
        self.payload = pin_memory(self.payload, *device)
        self.pin_ns = now_ns() - start
        return self


def _open(t_start_ns: int, payload: Any, meta: bytes) -> Envelope:
    """Rebuild an envelope; the last thing unpickling does."""
    envelope = Envelope(payload, meta[_TIMES_AT:_SENT_AT])
    envelope.pack_ns, envelope.t_sent_ns, envelope.pickled_bytes = SENT.unpack_from(meta, _SENT_AT)
    envelope.unpack_ns = now_ns() - t_start_ns
    return envelope


def fill_in(message: memoryview | bytes | bytearray, empty_bytes: int = 0) -> bool:
    """Write pack time, time of sending and length into a pickled envelope. False where there is none.

    `empty_bytes` is what an empty envelope takes by itself, so that the length is the batch's alone.
    """
    view = memoryview(message)
    if view.readonly:
        return False
    size = view.nbytes
    start = max(0, size - _TAIL)
    found = bytes(view[start:]).rfind(_MARK)
    if found < 0:
        return False
    at = start + found + _SENT_AT
    began, _, _ = SENT.unpack_from(view, at)
    now = now_ns()
    SENT.pack_into(view, at, now - began, now, size - empty_bytes)
    return True


def empty_message_bytes() -> int:
    """Bytes that an envelope adds to a message, pickled as multiprocessing does it."""
    from multiprocessing.reduction import ForkingPickler

    blank = TIMES.pack(*[0] * 14)
    return len(ForkingPickler.dumps((0, Envelope(None, blank)))) - len(ForkingPickler.dumps((0, None)))
