"""The envelope: it carries a batch and its times from the worker to main, through the DataLoader's
own queue.

    worker, main thread    `wrap(batch, times)` goes on the queue: a plain tuple, which is cheap to
                           pickle
    worker, feeder thread  `sender` writes pack time, length and time of sending into the pickled
                           bytes just before they go
    main (or pin thread)   `opening` wraps the queue's receiving end. It reads the clock when the
                           bytes have arrived and when the batch is rebuilt, and returns an
                           `Envelope`
    pin thread             torch calls `pin_memory()` on anything that has one

So nothing is matched by guess, and no second channel is needed.
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
    """A received batch and its times (ns). `times` is packed by `TIMES`."""

    __slots__ = ()

    def pin_memory(self, *device: object) -> Envelope:
        """Called by torch's pin thread."""
        pin_memory = pinner()
        start = now_ns()
        self.payload = pin_memory(self.payload, *device)
        self.pin_ns = now_ns() - start
        return self


def wrap(batch: Any, times: bytes) -> tuple[bytes, Any, bytes]:
    """What a worker puts on the queue for a batch.

    It is a tuple: for a class of ours, multiprocessing's pickler would search its reducers in
    Python, in a thread that blocks the worker meanwhile.
    """
    return SEAL, batch, MARK + times + SENT.pack(now_ns(), -1, -1)


def unwrap(data: Any, unpack_ns: int = -1) -> Any:
    """The `Envelope` of a wrapped batch; anything else unchanged."""
    return hooks.opened(data, unpack_ns, Envelope)


def opening(queue: Any, stateful: bool) -> None:
    """Make this queue return envelopes, in this process. `stateful`: torchdata's messages also hold
    a state.

    The wrappers do not keep the queue alive, so that its pipes are closed with the iterator.
    """
    get = functools.partial(queue.get.__func__, weakref.proxy(queue))
    queue._recv_bytes = arrival = hooks.arriving(queue._recv_bytes)

    def get_with_state(*args: Any, **kwargs: Any) -> Any:
        message = get(*args, **kwargs)
        unpack_ns = now_ns() - arrival.t_last
        if type(message) is tuple and len(message) == 2 and type(message[1]) is tuple:
            task, (batch, *state) = message
            return task, (unwrap(batch, unpack_ns), *state)
        return message

    queue.get = get_with_state if stateful else hooks.getting(get, arrival, Envelope)


def sender(send: Any) -> Any:
    """`send`, which also fills in envelopes."""
    from multiprocessing.reduction import ForkingPickler

    blank = wrap(None, TIMES.pack(*[0] * 14))
    messages = [ForkingPickler.dumps((0, content)) for content in (blank, None)]
    return hooks.sending(send, len(messages[0]) - len(messages[1]))  # what an envelope adds
