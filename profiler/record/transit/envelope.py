"""The envelope: a batch on its way from worker to main, carrying its own times through the
DataLoader's own queue.

    worker, main thread    `sealed(batch, times)` is put on the queue: a plain tuple, which pickles
                           at no extra cost
    worker, feeder thread  `fill_in` sees the pickled bytes, and writes pack time, length and time
                           of sending into them just before they go
    main (or pin thread)   `opening` wraps the queue's receiving end: it looks at the clock when the
                           bytes have arrived and when the batch is rebuilt, and hands on an
                           `Envelope`
    pin thread             torch calls `pin_memory()` on anything that has one

Nothing is matched by guess and no second channel is needed.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from ...base.clock import now_ns
from ...base.torch_parts import pinner
from ...native.form import hooks
from ...native.layout import MARK, SEAL, SENT, TIMES


class Envelope(hooks.Parcel):
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

    A tuple and bytes: an object of a class of ours would cost multiprocessing's pickler a search
    through its reducers in Python, in a thread that keeps the worker from working meanwhile.
    """
    return SEAL, batch, MARK + times + SENT.pack(now_ns(), -1, -1)


def opened(data: Any, unpack_ns: int = -1) -> Any:
    """The `Envelope` of a sealed batch; anything else as it is."""
    return hooks.opened(data, unpack_ns, Envelope)


def opening(queue: Any, stateful: bool) -> None:
    """Make this queue hand on envelopes, in this process. `stateful`: torchdata's messages hold a
    state beside.

    What stands in the queue does not keep it alive: its pipes are closed when the iterator goes,
    not when garbage is collected next.
    """
    get = functools.partial(queue.get.__func__, weakref.proxy(queue))
    queue._recv_bytes = arrival = hooks.arriving(queue._recv_bytes)

    def get_with_state(*args: Any, **kwargs: Any) -> Any:
        message = get(*args, **kwargs)
        unpack_ns = now_ns() - arrival.t_last
        if type(message) is tuple and len(message) == 2 and type(message[1]) is tuple:
            task, (batch, *state) = message
            return task, (opened(batch, unpack_ns), *state)
        return message

    queue.get = get_with_state if stateful else hooks.getting(get, arrival, Envelope)


def sender(send: Any) -> Any:
    """`send`, made to fill in envelopes on their way."""
    return hooks.sending(send, empty_message_bytes())


def empty_message_bytes() -> int:
    """Bytes that an envelope adds to a message, pickled as multiprocessing does it."""
    from multiprocessing.reduction import ForkingPickler

    blank = TIMES.pack(*[0] * 14)
    return len(ForkingPickler.dumps((0, sealed(None, blank)))) - len(
        ForkingPickler.dumps((0, None))
    )
