"""The two forms of the hottest path do the same; memory and references of the compiled one."""

import ast
import gc
import inspect
import struct
import tracemalloc
import weakref
from collections import deque
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import SimpleNamespace

import pytest

import two_forms
from loaderscope.profiler.base.schema import BATCH, EPOCH, RECORD_BYTES, WINDOW_AT
from loaderscope.profiler.native import form, python_form

compiled = pytest.mark.skipif(form.native is None, reason=form.why_python or "compiled")
compiled_alone = pytest.mark.parametrize("house", [two_forms.COMPILED], indirect=True)
SEQ = struct.Struct("@q")


@pytest.fixture(params=two_forms.available())
def house(request):
    """What is tested, in one form."""
    with two_forms.form(request.param) as imported:
        names = [(name, f"profiler.{room}.{name}") for room in ROOMS for name in ROOMS[room]]
        yield SimpleNamespace(**{name: imported(path) for name, path in names})


ROOMS = {
    "native": ("form",),
    "record.iterate": ("iterators", "iteration", "recorder"),
    "store.lanes": ("lane",),
    "record.transit": ("envelope", "fetchers", "worker"),
}


class Idle:
    """The shape of torch's single-process iterator."""

    _ls = None
    _auto_collation = True
    _pin_memory = False

    def __init__(self, answers):
        self.answers = answers

    def __iter__(self):
        return self

    def __next__(self):
        answer = next(self.answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def lane_of(house, records):
    lane = house.lane.Lane(Path(), "test", BATCH, house.lane.Budget(0), lambda text: None)
    lane.buf = bytearray(WINDOW_AT + records * RECORD_BYTES)
    lane.committed = memoryview(bytearray(8)).cast("Q")
    lane.capacity = records
    return lane


def stepping(house, answers, records=1000):
    """An iterator that records what it gives, and its iteration."""
    on_end, on_failure = house.iterators.on_end, house.iterators.on_failure
    hook = house.form.hooks.stepping(Idle.__next__, on_end, on_failure)
    iterator = type("Stepped", (Idle,), {"__next__": hook})(answers)
    step = house.iteration.Iteration(house.recorder.Recorder("test", "none", {}, {}))
    step.take(lane_of(house, records))
    step.detailed = step.special = False
    iterator._ls = step
    return iterator, step


def test_one_form_is_used_everywhere(house):
    hooks, in_use = house.form.hooks, house.form.native is not None
    assert (house.form.why_python == "") == in_use == (hooks is house.form.native)
    assert hooks.__name__.endswith(".native._native" if in_use else ".native.python_form")
    assert issubclass(house.iteration.Iteration, hooks.BatchTimings)
    assert issubclass(house.lane.Lane, hooks.LaneState)
    assert issubclass(house.envelope.Envelope, hooks.Parcel)


STUB = ast.parse(Path(form.__file__).with_name("_native.pyi").read_text()).body
HOOKS = {
    node.name: [argument.arg for argument in node.args.posonlyargs]
    for node in STUB
    if isinstance(node, ast.FunctionDef) and node.name not in ("records", "envelopes")
}
TYPES = {node.name for node in STUB if isinstance(node, ast.ClassDef) and node.name != "Hook"}


@pytest.mark.parametrize("module", [form.native, python_form])
def test_both_forms_have_what_the_stub_declares(module):
    if module is None:
        pytest.skip(form.why_python)
    found = {name: inspect.signature(getattr(module, name)).parameters for name in HOOKS}
    assert {name: list(given) for name, given in found.items()} == HOOKS
    for given in found.values():
        assert all(each.kind is each.POSITIONAL_ONLY for each in given.values())
    assert len(TYPES) == 7 and vars(module).keys() >= TYPES


@pytest.mark.parametrize(("value", "pure"), [("1", True), ("", False), ("0", False)])
def test_the_variable_chooses(value, pure):
    found, why = form.load({form.PURE_VARIABLE: value})
    assert ("LOADERSCOPE_PURE" in why) == pure
    assert (found is None) >= pure


def test_errors_of_the_base_pass_unchanged(house):
    for error in (ValueError("bad"), KeyboardInterrupt(), StopIteration("said"), SystemExit(3)):
        iterator, step = stepping(house, iter([1, error, 2]))
        assert next(iterator) == 1
        with pytest.raises(type(error)) as caught:
            next(iterator)
        assert caught.value is error
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        names = [entry.name for entry in caught.traceback]
        assert names[-1] == "__next__" and "drop_inner_frames" not in names
        assert step.lane.count == (0 if isinstance(error, StopIteration) else 1)
        assert next(iterator) == 2  # the iterator goes on, recorded or not


def test_a_failure_of_ours_costs_nothing_but_the_recording(house, capsys):
    iterator, step = stepping(house, iter(range(5)))
    step.lane.capacity = 10**6  # the lane claims room it does not have
    step.lane.count = 10**5
    assert list(iterator) == [0, 1, 2, 3, 4]
    assert iterator._ls is None and not step.recorder.enabled
    assert "recording of test stopped" in capsys.readouterr().err


def test_an_interrupt_in_our_part_reaches_the_loop(house, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(house.iteration.Iteration, "finish", interrupted)
    iterator, step = stepping(house, iter(range(5)))
    step.special = True
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert step.lane.count == 0
    monkeypatch.setattr(house.iteration.Iteration, "ended", interrupted)
    step.special = False
    with pytest.raises(KeyboardInterrupt) as caught:
        list(iterator)
    assert isinstance(caught.value.__context__, StopIteration)


def test_a_lane_closed_by_a_batch_s_own_code_is_left_alone(house):
    def answers():
        yield 1
        lane.close()
        yield 2
        yield 3

    iterator, step = stepping(house, answers())
    lane = step.lane
    buf = lane.buf
    assert list(iterator) == [1, 2, 3]
    assert SEQ.unpack_from(buf, WINDOW_AT + RECORD_BYTES)[0] == 0  # nothing more was written there
    assert lane.capacity == 0


@compiled
def test_a_layout_it_does_not_know_is_refused():
    form.tell(form.native)
    for other in ({"record": EPOCH}, {"every": 63}, {"mark": b"short"}):
        with pytest.raises(ValueError, match="not as expected"):
            form.tell(form.native, **other)
    form.tell(form.native)


@compiled
@compiled_alone
def test_memory_is_held_while_it_is_the_lane_s_and_no_longer(house):
    lane = lane_of(house, 3)
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


def test_the_garbage_collector_may_take_it_all(house):
    # Python 3.10 crashes where a memoryview is cleared while its memory is in use.
    freed = []
    for _ in range(20):
        iterator, step = stepping(house, iter([1]))
        step.lane.buf = memoryview(step.lane.buf)
        step.indices = iterator  # a circle
        weakref.finalize(iterator, freed.append, 1)
        assert next(iterator) == 1
        del iterator, step
    gc.collect()
    assert len(freed) == 20


@compiled
@compiled_alone
def test_hooks_bind_as_functions_do(house):
    iterator, _ = stepping(house, iter(range(3)))
    bound = iterator.__next__
    assert bound() == 0
    assert type(iterator).__next__(iterator) == 1
    assert type(iterator).__next__.__wrapped__ is Idle.__next__
    with pytest.raises(TypeError):
        type(iterator).__next__()
    with pytest.raises(TypeError):
        iterator.__next__(1)


def repeated(house, times):
    """Every path, good and bad, many times."""

    sent, timer = deque(maxlen=1), house.worker._Timer(0, stateful=False)
    held = SimpleNamespace(get=lambda: (5, [1, 2]), put=sent.append)
    timer.listen(held, held)
    send = house.envelope.sender(len)
    for _ in range(times):
        iterator, step = stepping(house, iter([object(), ValueError("bad"), object()]))
        next(iterator)
        with pytest.raises(ValueError, match="bad"):
            next(iterator)
        list(iterator)
        step.lane.close()
        list(house.fetchers.TimedIndices([object()] * 3))
        timer.timings.detailed = False
        held.get()
        held.put((5, object()))
        send(memoryview(bytearray(b"x" * 300 + sent[0][1][2] + b"end")))
        found = house.envelope.unwrap(sent[0][1], 7)
        assert type(found) is house.envelope.Envelope
        assert len(found.times) == house.envelope.TIMES.size


def test_nothing_leaks(house):
    repeated(house, 200)
    tracemalloc.start()
    try:
        held = []
        for times in (50, 1000):
            repeated(house, times)
            gc.collect()
            held.append((tracemalloc.get_traced_memory()[0], len(gc.get_objects())))
    finally:
        tracemalloc.stop()
    (memory, objects), (memory_later, objects_later) = held
    assert memory_later - memory < 20_000
    assert objects_later - objects < 20


def test_what_is_sent_says_when_and_how_much(house):
    sent = []
    send = house.envelope.sender(lambda message: sent.append(bytes(message)))
    times = house.envelope.TIMES.pack(*range(8), 1, 2, 3, 0.5, 0.5, 0.5)
    send(ForkingPickler.dumps((0, house.envelope.wrap("batch" * 100, times))))
    _, content = ForkingPickler.loads(sent[0])
    opened = house.envelope.unwrap(content, 9)
    assert (opened.payload, opened.times) == ("batch" * 100, times)
    assert opened.pack_ns >= 0 and opened.t_sent_ns > 0 and opened.unpack_ns == 9
    assert 500 <= opened.pickled_bytes < 530
    for other in (b"", b"short", b"x" * 1000):
        send(memoryview(bytearray(other)))
        send(other)  # cannot be written into: sent as it is
    assert sent[1:] == [part for other in (b"", b"short", b"x" * 1000) for part in (other, other)]
