"""The envelope: a batch and its times through a queue, and nothing else touched on the way."""

import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

from loaderscope.profiler.record.transit import envelope
from loaderscope.profiler.record.transit.envelope import TIMES, Envelope, opening, unwrap, wrap

NUMBERS = TIMES.pack(*range(1, 15))


class Queue:
    """The receiving end of one of multiprocessing's, with these messages on their way."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def _recv_bytes(self):
        return self.messages.pop(0)

    def get(self):
        return pickle.loads(self._recv_bytes())


def sent(message):
    """What arrives of a message that a worker's feeder thread sends."""
    return all_sent([ForkingPickler.dumps(message)])[0]


def all_sent(messages):
    arrived = []
    send = envelope.sender(lambda view: arrived.append(bytes(view)))
    for message in messages:
        send(memoryview(bytearray(message)))
    return arrived


def test_what_was_sealed_is_opened_with_its_times():
    found = unwrap(wrap(["a batch"], NUMBERS), 5)
    assert type(found) is Envelope
    assert (found.payload, found.times, found.unpack_ns) == (["a batch"], NUMBERS, 5)
    assert (found.t_sent_ns, found.pickled_bytes, found.pin_ns) == (-1, -1, -1)  # it never left


@pytest.mark.parametrize("data", [None, [1], (1, 2, 3), (b"12345678", 1, b""), {"a": 1}, "text"])
def test_anything_else_is_as_it_is(data):
    assert unwrap(data) is data


def test_waiting_for_the_batch_before_is_not_packing():
    """Batches queue up in front of the feeder thread."""
    waiting = [ForkingPickler.dumps((task, wrap(task, NUMBERS))) for task in range(2)]
    first, second = (unwrap(pickle.loads(message)[1]) for message in all_sent(waiting))
    assert second.pack_ns <= second.t_sent_ns - first.t_sent_ns


def test_a_batch_that_holds_the_mark_itself_is_not_taken_for_one():
    """The mark counts where it comes last."""
    evil = wrap(0, NUMBERS)[2]
    found = unwrap(pickle.loads(sent((0, wrap(evil, NUMBERS))))[1])
    assert found.payload == evil and found.pickled_bytes > 0


def test_a_queue_hands_on_envelopes_with_what_rebuilding_took():
    queue = Queue(sent((7, wrap(["batch"], NUMBERS))), sent((8, "no envelope")), sent(None))
    opening(queue, stateful=False)
    task, found = queue.get()
    assert task == 7 and found.payload == ["batch"] and found.unpack_ns >= 0
    assert queue.get() == (8, "no envelope")
    assert queue.get() is None


def test_torchdata_s_messages_keep_the_state_beside():
    queue = Queue(sent((7, (wrap(["batch"], NUMBERS), {"state": 1}))), sent((8, ("plain", None))))
    opening(queue, stateful=True)
    task, (found, state) = queue.get()
    assert (task, found.payload, state) == (7, ["batch"], {"state": 1}) and found.unpack_ns >= 0
    assert queue.get() == (8, ("plain", None))


def test_pinning_pins_what_is_inside_and_is_timed(monkeypatch):
    given = []
    monkeypatch.setattr(envelope, "pinner", lambda: lambda *seen: given.append(seen) or "pinned")
    found = unwrap(wrap("batch", NUMBERS))
    assert found.pin_memory("device") is found
    assert given == [("batch", "device")]
    assert found.payload == "pinned" and found.pin_ns >= 0
