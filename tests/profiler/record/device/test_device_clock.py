"""Which device is in use, and what the clock makes of its events: made up, and their times given."""

import os
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from loaderscope.profiler.base.schema import BATCH, LATE_ROWS
from loaderscope.profiler.record.device import copies, step_log
from loaderscope.profiler.record.device.accelerator import Accelerator, in_use
from loaderscope.profiler.record.device.device_clock import APART, DeviceClock
from loaderscope.profiler.record.iterate.iteration import Iteration
from loaderscope.profiler.record.iterate.recorder import Recorder
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment

MS = 1_000_000


class Device:
    """As `torch.cuda`: `now_ms` is stamped on events, `done_ms` is how far it has come."""

    now_ms, done_ms, capturing, made = 0.0, float("inf"), False, 0

    def current_device(self):
        return 0

    def is_current_stream_capturing(self):
        return self.capturing

    def Event(self, enable_timing):
        assert enable_timing
        self.made += 1
        return Event(self)


class Event:
    at_ms = -1.0

    def __init__(self, device):
        self.device = device

    def record(self):
        self.at_ms = self.device.now_ms

    def query(self):
        return self.at_ms <= self.device.done_ms

    def elapsed_time(self, end):
        done = self.query() and end.query()
        assert done, "reading an event that is not done would wait for it"
        return end.at_ms - self.at_ms


@pytest.fixture
def lane(tmp_path):
    return Lane(tmp_path, "batches0x0", BATCH, Budget(1 << 24), pytest.fail)


def an_iteration():
    return Iteration(Recorder("test", "none", {}, {}))


@pytest.fixture
def clock():
    step = an_iteration()  # which the clock does not hold
    copies.install("meta")
    yield DeviceClock(step, Accelerator("meta", Device()))
    copies.uninstall()


@pytest.fixture
def device(clock):
    return clock._device._module


def hand_over(clock, lane, batch=None):
    lane.append(*[-1] * (len(BATCH.fields) - 1))
    clock.handed_over(lane, lane.count - 1, batch)


def steps(clock, lane, number):
    for _ in range(number):
        clock.entered()
        hand_over(clock, lane)
    clock.entered()


def stepped(clock, lane):
    """A batch that has just been handed over."""
    clock.entered()
    hand_over(clock, lane, batch := torch.ones(1024))
    return batch


def records(lane):
    return read_segment(lane.directory / "batches0x0-000000.seg")[0]


def test_stall_and_compute_by_events(device, clock, lane):
    clock.t_entered = 0
    clock.entered()
    clock.t_entered -= 1000 * MS  # next() took a second of host time
    hand_over(clock, lane)
    device.now_ms = 5  # the device reaches the end of step 1 at 5 ms,
    clock.entered()
    clock.t_entered -= 1000 * MS
    device.now_ms = 8  # and is given step 2 at 8 ms
    hand_over(clock, lane)
    device.now_ms = 9
    clock.entered()
    got = records(lane)
    assert list(got["compute_device_ns"]) == [5 * MS, 1 * MS]
    assert list(got["stall_ns"]) == [0, 3 * MS]


def test_nothing_is_read_before_it_is_done_and_events_are_used_again(device, clock, lane):
    device.done_ms = -1
    steps(clock, lane, 20)
    assert (records(lane)["compute_device_ns"] == -1).all()
    device.done_ms = float("inf")
    clock.drain()
    assert (records(lane)["compute_device_ns"] >= 0).all()
    steps(clock, lane, 200)
    assert device.made < 60 + 2 * APART[1]


def test_a_device_that_never_answers_holds_no_events_for_ever(device, clock, lane):
    device.done_ms = -1
    steps(clock, lane, 2000)
    assert len(clock.log) <= step_log.MAX_PENDING + APART[1] + 1 <= LATE_ROWS
    # It had work of an earlier step at each hand-over: that is certain, whatever became of it.
    assert (records(lane)["stall_ns"][: 2000 - len(clock.log) - 1] == 0).all()


class Slow(Event):
    """Half a millisecond passes before each."""

    def record(self):
        self.device.now_ms += 0.5
        super().record()


@pytest.mark.parametrize("pinned", [True, False, None])
def test_on_an_idle_stream_issuing_is_no_copying(device, clock, lane, monkeypatch, pinned):
    clock._device._event = lambda enable_timing: Slow(device)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: pinned)
    batch = stepped(clock, lane)
    batch.to("meta", non_blocking=True)
    clock.entered()
    (copied, *_), (call, *_) = (records(lane)[name] for name in ("h2d_ns", "h2d_host_ns"))
    between = MS // 2
    # It began in a call that does not wait for it, or was over when one that does returned.
    waits, goes_on = min(between, call), max(0, between - call // 2)
    assert copied == {True: goes_on, False: waits, None: between}[pinned]


def test_a_copy_that_is_waited_for_takes_no_longer_than_its_call(device, clock, lane):
    batch = stepped(clock, lane)
    batch.to("meta")
    clock._open.events[0][1].at_ms = 50_000.0  # the program came to record it much later
    clock.entered()
    assert records(lane)["h2d_ns"][0] == records(lane)["h2d_host_ns"][0] > 0


def test_no_event_is_recorded_into_a_graph(device, clock, lane):
    device.capturing = True
    steps(clock, lane, 1)
    assert (device.made, records(lane)["compute_device_ns"][0]) == (0, -1)


def test_a_broken_device_switches_the_clock_off():
    step = an_iteration()
    step.device = clock = DeviceClock(step, Accelerator("meta", Device()))
    clock.capturing = Mock(side_effect=RuntimeError("device lost"))
    clock.entered()
    assert step.device is None
    assert "device lost" in step.recorder.facts["reasons"]["h2d"]


def test_a_thread_copies_when_the_loop_has_gone_on(device, clock, lane):
    batches = [torch.ones(1024 + k) for k in range(8)]
    for batch in batches:
        clock.entered()
        hand_over(clock, lane, [batch])
    assert (records(lane)["h2d_copies"][:-1] == 0).all()
    thread = threading.Thread(target=lambda: [batch.to("meta") for batch in batches])
    thread.start()
    thread.join()
    clock.entered()
    got = records(lane)
    # Of the older batches the memory may be another's by now.
    assert list(got["h2d_copies"]) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert list(got["h2d_bytes"][4:]) == [4 * (1024 + k) for k in range(4, 8)]
    assert (got["h2d_ns"][4:] >= 0).all()
    assert (got["compute_device_ns"] >= 0).all()


def test_copies_not_done_yet_are_waited_for_by_nobody(device, clock, lane):
    batch = stepped(clock, lane)
    device.now_ms, device.done_ms = 20.0, 1.0  # on a stream that lags behind
    batch.to("meta", non_blocking=True)
    clock._open.events[0][1].at_ms = 70.0
    clock.entered()
    assert records(lane)["h2d_ns"][0] == -1
    device.done_ms = 80.0
    clock.drain()
    assert records(lane)["h2d_ns"][0] == 50 * MS  # issued before the stream came to its first event


def test_what_the_device_reaches_after_the_epoch_is_read_with_the_next(device, clock, lane):
    device.done_ms = -1
    steps(clock, lane, 5)
    clock.drain()
    assert (records(lane)["compute_device_ns"] == -1).all()
    device.done_ms = float("inf")
    DeviceClock(an_iteration(), Accelerator("meta", device)).entered()
    assert (records(lane)["compute_device_ns"] >= 0).all()
    assert not any(log is clock for _, log in step_log._logs)


def test_a_forked_child_leaves_the_parents_records_alone(device, clock, lane, monkeypatch):
    device.done_ms = -1
    steps(clock, lane, 1)
    clock.drain()
    device.done_ms = float("inf")
    monkeypatch.setattr(os, "getpid", lambda: -5)
    step_log.read_logs()
    assert (records(lane)["compute_device_ns"] == -1).all()
    assert not step_log._logs


@pytest.fixture
def current(monkeypatch):
    """Sets torch's accelerator, and the module that speaks for it."""

    def to(kind, **parts):
        device = SimpleNamespace(type=kind)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: device)
        monkeypatch.setattr(torch, kind, SimpleNamespace(**parts), raising=False)

    return to


def test_nothing_is_in_use_before_the_program_uses_it(current):
    never = Mock(side_effect=AssertionError("this would initialise it"))
    current("npu", is_initialized=lambda: False, current_device=never, Event=never)
    assert in_use() is None
    current("npu", is_initialized=lambda: True, current_device=lambda: 3)
    device = in_use()
    assert (device.kind, device.current_device(), device.name()) == ("npu", 3, "npu")
    current("mps", Event=lambda enable_timing: None)
    assert in_use() == "torch.mps does not tell whether the program uses it"


def test_cuda_beside_another_accelerator_and_before_there_were_any(current, monkeypatch):
    current("npu", is_initialized=lambda: False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert in_use().kind == "cuda"
    monkeypatch.delattr(torch, "accelerator")
    assert (in_use().kind, in_use().lacks) == ("cuda", None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert in_use() is None


def test_what_a_module_lacks_is_taken_from_torch_or_said(monkeypatch):
    bare = Accelerator("npu", SimpleNamespace())
    assert bare.lacks is None  # torch.Event
    assert bare.capturing() is False
    made = []
    monkeypatch.setattr(torch, "Event", lambda *args, **kwargs: made.append((*args, kwargs)))
    bare.event()
    assert made == [("npu", {"enable_timing": True})]
    monkeypatch.delattr(torch, "Event")
    assert Accelerator("npu", SimpleNamespace()).lacks == "torch.npu has no events"
