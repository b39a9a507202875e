"""The two forms of the hottest path do the same: they are compared in processes of their own, and the one in use is
tested here. What only the compiled form can get wrong (memory, references) is asked of it alone."""

from __future__ import annotations

import gc
import itertools
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loaderscope.profiler.base.schema import BATCH, EPOCH, RECORD_BYTES
from loaderscope.profiler.iterate import iterators
from loaderscope.profiler.iterate.recorder import Iteration, Recorder
from loaderscope.profiler.lanes.lane import WINDOW_AT, Budget, Lane
from loaderscope.profiler.native import form
from loaderscope.profiler.transit import envelope
from loaderscope.profiler.transit.fetchers import TimedIndices

compiled = pytest.mark.skipif(form.native is None, reason=f"the Python form is in use: {form.why_python}")
SEQ = struct.Struct("@q")


class Idle:
    """The shape of torch's single-process iterator."""

    _ls: Any = None
    _auto_collation = True
    _pin_memory: Any = False

    def __init__(self, answers: Iterator[Any]) -> None:
        self.answers = answers

    def __iter__(self) -> Idle:
        return self

    def __next__(self) -> Any:
        answer = next(self.answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def lane_of(records: int) -> Lane:
    lane = Lane(Path(), "test", BATCH, Budget(0), lambda text: None)
    lane.buf = bytearray(WINDOW_AT + records * RECORD_BYTES)
    lane.committed = memoryview(bytearray(8)).cast("Q")
    lane.capacity = records
    return lane


def stepping(answers: Iterator[Any], records: int = 1000) -> tuple[Any, Iteration]:
    """An iterator that records what it gives, and its step."""
    cls: Any = type("Stepped", (Idle,), {"__next__": iterators._stepping(Idle.__next__)})
    iterator = cls(answers)
    step = Iteration(Recorder("test", {}))
    step.take(lane_of(records))
    step.detailed = step.special = False
    iterator._ls = step
    return iterator, step


def test_the_form_in_use_is_used_everywhere() -> None:
    assert (iterators._native is None) == (envelope.native is None) == (form.native is None)
    assert (form.why_python == "") == (form.native is not None)
    assert issubclass(Iteration, form.BatchTimings) and issubclass(Lane, form.LaneState)


@pytest.mark.parametrize(("value", "pure"), [("1", True), ("", False), ("0", False)])
def test_the_variable_chooses(value: str, pure: bool) -> None:
    found, why = form.load({form.PURE_VARIABLE: value})
    assert ("LOADERSCOPE_PURE" in why) == pure
    assert (found is None) >= pure


OBSERVE = """
import json, sys
from pathlib import Path
sys.path.insert(0, {here!r})
import numpy as np, torch
from torch.utils.data import DataLoader
import loaderscope
from loaderscope.profiler.native import form
# Slow batches are looked at in detail, and which are slow depends on the machine.
LOOKED_AT = ("bytes", "tensors", "collate_cpu_ns", "fetch_cpu_ns", "own_ns", "sample_min_ns", "sample_median_ns",
             "sample_max_ns", "queued_ns")
from loaderscope.profiler.lanes.lane_reader import read_segment, segments
from loaderscope.profiler.session import session
from loaderscope.profiler.iterate.watch import loader_place
seen = {{"native": form.native is not None}}
for workers in (0, 2):
    loader = loaderscope.watch(DataLoader(torch.arange(1000), batch_size=3, num_workers=workers))
    for _ in range(2):
        values = [batch.tolist() for batch in loader]
    directory, index = loader_place(loader)
    session.flush()
    got = np.concatenate([read_segment(path)[0] for path in segments(directory, f"batches{{index}}x0")])
    times = ("t_ns", "wait_ns", "index_ns", "fetch_ns", "collate_ns")
    # What does not depend on the moment: which batches, and which fields are measured in which of them.
    seen[workers] = {{
        "values": values,
        "exact": {{name: got[name].tolist() for name in ("seq", "samples", "epoch", "task", "worker", "digest")}},
        "measured": {{name: (got[name] != -1).sum().item() for name in got.dtype.names if name not in LOOKED_AT}},
        "sane": [bool((got[name] > 0).all()) for name in times],
        "pickled": sorted(set(got["pickled_bytes"].tolist())) if workers else None,
    }}
print(json.dumps(seen))
"""


def observed(tmp_path: Path, pure: str) -> Any:
    env = {**os.environ, "LOADERSCOPE_DIR": str(tmp_path / f"runs{pure}"), "LOADERSCOPE_PURE": pure}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    code = OBSERVE.format(here=str(Path(__file__).parent))
    result = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


@compiled
def test_both_forms_record_the_same(tmp_path: Path) -> None:
    python, native = observed(tmp_path, "1"), observed(tmp_path, "0")
    assert (python.pop("native"), native.pop("native")) == (False, True)
    assert python == native
    assert all(python["0"]["sane"]) and all(python["2"]["sane"])
    assert len(python["0"]["exact"]["seq"]) == 2 * 334


def test_records_are_written_where_the_schema_says() -> None:
    iterator, step = stepping(iter("abc"))
    step.t_index, step.t_fetch, step.t_collate, step.t_collated = 10, 30, 60, 100
    step.samples, step.epoch = 5, 7
    lane = step.lane
    assert list(iterator) == ["a", "b", "c"]
    assert lane.committed[0] == 3
    record = {
        field.name: struct.unpack_from("@" + field.code, lane.buf, WINDOW_AT + RECORD_BYTES + BATCH.offset(field.name))[
            0
        ]
        for field in BATCH.fields[:8]
    }
    assert record.pop("t_ns") > 0
    assert record.pop("wait_ns") >= 0
    assert record == {"seq": 2, "index_ns": 20, "fetch_ns": 30, "collate_ns": 40, "samples": 5, "epoch": 7}


def test_errors_of_the_base_pass_unchanged() -> None:
    for error in (ValueError("bad"), KeyboardInterrupt(), StopIteration("said"), SystemExit(3)):
        iterator, step = stepping(iter([1, error, 2]))
        assert next(iterator) == 1
        with pytest.raises(type(error)) as caught:
            next(iterator)
        assert caught.value is error
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        names = [entry.name for entry in caught.traceback]
        assert names[-1] == "__next__" and "drop_inner_frames" not in names
        assert step.lane.count == (0 if isinstance(error, StopIteration) else 1)
        assert next(iterator) == 2  # the iterator goes on, recorded or not


def test_a_failure_of_ours_costs_nothing_but_the_recording(capsys: pytest.CaptureFixture[str]) -> None:
    iterator, step = stepping(iter(range(5)))
    step.lane.capacity = 10**6  # the lane claims room it does not have
    step.lane.count = 10**5
    assert list(iterator) == [0, 1, 2, 3, 4]
    assert iterator._ls is None and not step.recorder.enabled
    assert "recording of test stopped" in capsys.readouterr().err


def test_an_interrupt_in_our_part_reaches_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Iteration, "finish", interrupted)
    iterator, step = stepping(iter(range(5)))
    step.special = True
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert step.lane.count == 0
    monkeypatch.setattr(Iteration, "ended", interrupted)
    step.special = False
    with pytest.raises(KeyboardInterrupt) as caught:
        list(iterator)
    assert isinstance(caught.value.__context__, StopIteration)


def test_a_lane_closed_by_a_batch_s_own_code_is_left_alone() -> None:
    def answers() -> Iterator[int]:
        yield 1
        lane.close()
        yield 2
        yield 3

    iterator, step = stepping(answers())
    lane = step.lane
    buf = lane.buf
    assert list(iterator) == [1, 2, 3]
    assert SEQ.unpack_from(buf, WINDOW_AT + RECORD_BYTES)[0] == 0  # nothing more was written there
    assert lane.capacity == 0


def test_one_batch_in_so_many_is_looked_at() -> None:
    iterator, step = stepping(itertools.repeat(1))
    for _ in range(63):
        next(iterator)
    assert not step.special
    next(iterator)
    assert step.special and step.detailed


def test_indices_are_stamped_one_by_one() -> None:
    indices = TimedIndices([3, 1, 2])
    assert list(indices) == [3, 1, 2]
    assert len(indices.stamps) == 4 and sorted(indices.stamps) == indices.stamps
    iterator = iter(indices)
    assert next(iterator) == 3
    assert len(indices.stamps) == 1
    assert list(iterator) == [1, 2]
    assert list(iterator) == [] and len(indices.stamps) == 4


# The compiled form alone.


@compiled
def test_a_layout_it_does_not_know_is_refused() -> None:
    assert form.records(WINDOW_AT, EPOCH, (64, 256, 1024)) is None
    assert form.records(WINDOW_AT, BATCH, (63, 256, 1024)) is None
    assert form.records(WINDOW_AT, BATCH, (64, 256, 1024)) is form.native
    times = envelope.TIMES.format, envelope.SENT.format, envelope._MARK, envelope._SEAL
    assert form.envelopes("@9q3i3f", *times[1:], 64, 6, 10**6) is None
    assert form.envelopes(*times[:2], b"short", times[3], 64, 6, 10**6) is None


@compiled
def test_memory_is_held_while_it_is_the_lane_s_and_no_longer() -> None:
    lane = lane_of(3)
    buf = lane.buf
    with pytest.raises(BufferError):
        buf.extend(b"x")  # its address is in use
    lane.abandon("forked")
    buf.extend(b"x")
    with pytest.raises(BufferError):
        lane.buf = b"read only"
    with pytest.raises(TypeError):
        lane.buf = None
    with pytest.raises(AttributeError):
        del lane.buf
    assert len(lane.buf) == WINDOW_AT + RECORD_BYTES


def test_the_garbage_collector_may_take_it_all() -> None:
    # Python 3.10 crashes where a memoryview is cleared while its memory is in use.
    freed = []
    for _ in range(20):
        iterator, step = stepping(iter([1]))
        step.lane.buf = memoryview(step.lane.buf)
        step.indices = iterator  # a circle
        weakref.finalize(iterator, freed.append, 1)
        assert next(iterator) == 1
        del iterator, step
        gc.collect()
    assert len(freed) == 20


@compiled
def test_counts_that_are_not_memory_are_set_as_items() -> None:
    class Counted(list[int]):
        pass

    iterator, step = stepping(iter(range(3)))
    counted = step.lane.committed = Counted([0])
    list(iterator)
    assert counted == [3]
    for other in (memoryview(bytearray(8)), memoryview(bytearray(8)).cast("i"), memoryview(bytearray(9))[1:].cast("Q")):
        step.lane.committed = other
        assert step.lane.committed is other


@compiled
def test_hooks_bind_as_functions_do() -> None:
    iterator, _ = stepping(iter(range(3)))
    bound = iterator.__next__
    assert bound() == 0
    assert type(iterator).__next__(iterator) == 1
    assert type(iterator).__next__.__wrapped__ is Idle.__next__
    with pytest.raises(TypeError):
        type(iterator).__next__()
    with pytest.raises(TypeError):
        iterator.__next__(1)


def repeated(times: int) -> None:
    """Every path, good and bad, many times."""
    from loaderscope.profiler.transit.worker import IndexQueue, ResultQueue, _Timer

    class Held:
        message: Any = None

        def get(self) -> Any:
            return 5, [1, 2]

        def put(self, message: Any) -> None:
            self.message = message

    held, timer = Held(), _Timer(0, stateful=False)
    tasks, results = IndexQueue(held, timer), ResultQueue(held, timer)
    send = envelope.sender(len)
    for _ in range(times):
        iterator, step = stepping(iter([object(), ValueError("bad"), object()]))
        next(iterator)
        with pytest.raises(ValueError, match="bad"):
            next(iterator)
        list(iterator)
        step.lane.close()
        list(TimedIndices([object()] * 3))
        timer.marks.detailed = False
        tasks.get()
        results.put((5, object()))
        send(memoryview(bytearray(b"x" * 300 + held.message[1][2] + b"end")))
        found = envelope.opened(held.message[1], 7)
        assert type(found) is envelope.Envelope and len(found.times) == envelope.TIMES.size


def test_nothing_leaks() -> None:
    repeated(200)
    gc.collect()
    tracemalloc.start()
    try:
        repeated(50)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
        repeated(1000)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
    finally:
        tracemalloc.stop()
    assert after[0] - before[0] < 20_000
    assert after[1] - before[1] < 20


def test_what_is_sent_says_when_and_how_much() -> None:
    sent: list[bytes] = []
    send = envelope.sender(lambda message: sent.append(bytes(message)))
    from multiprocessing.reduction import ForkingPickler

    times = envelope.TIMES.pack(*range(8), 1, 2, 3, 0.5, 0.5, 0.5)
    send(ForkingPickler.dumps((0, envelope.sealed("batch" * 100, times))))
    _, content = ForkingPickler.loads(sent[0])
    opened = envelope.opened(content, 9)
    assert opened.payload == "batch" * 100
    assert opened.times == times
    assert opened.pack_ns >= 0 and opened.t_sent_ns > 0 and opened.unpack_ns == 9
    assert 500 <= opened.pickled_bytes < 530
    for other in (b"", b"short", b"x" * 1000):
        send(memoryview(bytearray(other)))
        send(other)  # cannot be written into: sent as it is
    assert sent[1:] == [part for other in (b"", b"short", b"x" * 1000) for part in (other, other)]
