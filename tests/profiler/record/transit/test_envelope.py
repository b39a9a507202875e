"""The envelope: a batch and its times through a queue, and nothing else touched on the way."""

import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

from loaderscope.profiler.record.transit import envelope
from loaderscope.profiler.record.transit.envelope import TIMES, opening, unwrap, wrap

NUMBERS = TIMES.pack(*range(1, 15))


class Queue:
    """The receiving end of one of multiprocessing's, with these messages on their way."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def _recv_bytes(self):
        return self.messages.pop(0)

    def get(self):
        return pickle.loads(self._recv_bytes())


def arrived(*contents):
    """What arrives of messages that a worker's feeder thread sends."""
    found = []
    send = envelope.sender(lambda view: found.append(bytes(view)))
    for content in [bytes(ForkingPickler.dumps(content)) for content in contents]:
        send(memoryview(bytearray(content)))
    return found


@pytest.mark.parametrize("data", [None, [1], (1, 2, 3), (b"12345678", 1, b""), {"a": 1}, "text"])
def test_anything_else_is_as_it_is(data):
    assert unwrap(data) is data


def test_waiting_for_the_batch_before_is_not_packing():
    """Batches queue up in front of the feeder thread."""
    messages = arrived(*((task, wrap(task, NUMBERS)) for task in range(2)))
    first, second = (unwrap(pickle.loads(message)[1]) for message in messages)
    assert second.pack_ns <= second.t_sent_ns - first.t_sent_ns


def test_a_batch_that_holds_the_mark_itself_is_not_taken_for_one():
    """The mark counts where it comes last."""
    evil = wrap(0, NUMBERS)[2]
    found = unwrap(pickle.loads(arrived((0, wrap(evil, NUMBERS)))[0])[1])
    assert found.payload == evil and found.pickled_bytes > 0


@pytest.mark.parametrize("stateful", [False, True])
def test_a_queue_hands_on_envelopes_with_what_rebuilding_took(stateful):
    """Torchdata's messages keep the state beside."""

    def content(batch, state):
        return (batch, state) if stateful else batch

    sent, bare = content(wrap(["batch"], NUMBERS), {"state": 1}), content("no envelope", None)
    queue = Queue(*arrived((7, sent), (8, bare), None))
    opening(queue, stateful=stateful)
    task, found = queue.get()
    found, state = found if stateful else (found, {"state": 1})
    assert (task, found.payload, state) == (7, ["batch"], {"state": 1}) and found.unpack_ns >= 0
    assert queue.get() == (8, bare)
    assert queue.get() is None
