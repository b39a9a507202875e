"""What a device needs once a batch and once a copy, in both forms."""

import gc
import pickle
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from loaderscope.profiler.base.schema import RECORD_BYTES, WINDOW_AT
from loaderscope.profiler.native import form, python_device

compiled = pytest.param(
    form.native, marks=pytest.mark.skipif(form.native is None, reason=form.why_python)
)


@pytest.fixture(params=[python_device, compiled], ids=["python", "compiled"])
def hooks(request):
    return request.param


class Device:
    index, capturing, made = 0, False, 0

    def event(self):
        self.made += 1
        return SimpleNamespace(number=self.made, record=lambda: None)


def clock_of(hooks, device):
    class Clock(hooks.StepMarks):
        told: list[Any]

        def due(self):
            self.told.append(("due", self.batches))

        def look(self, window, at, data):
            self.told.append(("look", window, at, data))
            return "looked"

        def failed(self, error):
            self.told.append(repr(error))
            if isinstance(error, KeyboardInterrupt):
                raise error

    clock = Clock(device.event, lambda: device.index, lambda: device.capturing)
    clock.told = []
    return clock


LANE = SimpleNamespace(window="window")


def steps(clock, count):
    """What so many steps leave in the log: events by numbers, waiting as whether it is known."""
    for n in range(count):
        clock.entered()
        clock.handed_over(LANE, n, "data")
    clock.entered()
    rows = [([event.number for event in entry[:3]], entry[3:]) for entry in clock.log]
    return [(*numbers, window, at, ns >= 0, data) for numbers, (window, at, ns, data) in rows]


def at(n):
    return WINDOW_AT + n * RECORD_BYTES


def test_each_step_has_its_three_events(hooks):
    clock = clock_of(hooks, Device())
    clock.until, clock.until_ns = 2, 1 << 62
    first, second = steps(clock, 2)
    assert first == (1, 2, 3, "window", at(0), True, None)
    assert second == (3, 4, 5, "window", at(1), True, None)
    assert clock.told == [("due", 2)]
    clock.until, clock.until_ns = 1 << 62, 0
    clock.entered()
    assert clock.told[1:] == [("due", 2)]  # by the time that has passed
    assert len(clock.log) == 2  # no batch was handed over in between
    clock.until_ns, clock.looking = 1 << 62, True
    clock.handed_over(LANE, 2, "data")
    assert clock.told[2:] == [("look", "window", at(2), "data")]
    clock.entered()
    assert clock.log[-1][-1] == "looked"


def test_events_are_used_again_on_their_own_device_only(hooks):
    device = Device()
    clock = clock_of(hooks, device)
    clock.pool.append(clock.mark())
    assert clock.mark().number == 1 and not clock.pool
    clock.pool.append(clock.mark())
    device.index = 1
    assert clock.mark().number == 3 and not clock.pool
    device.capturing = True
    assert clock.mark() is None
    device.capturing, clock.marking = False, False
    assert clock.mark() is None and device.made == 3


def test_what_goes_wrong_is_told_and_a_users_error_raised(hooks):
    def broken():
        raise errors.pop()

    errors = [ValueError("lost"), KeyboardInterrupt(), ValueError("lost")]
    clock = clock_of(hooks, Device())
    clock.make = broken
    clock.entered()
    with pytest.raises(KeyboardInterrupt):
        clock.handed_over(LANE, 0, None)
    clock.handed_over(LANE, 0, None)
    assert clock.told == ["ValueError('lost')", "KeyboardInterrupt()", "ValueError('lost')"]
    assert not clock.log


def test_a_clock_in_a_circle_goes_away(hooks):
    clock = clock_of(hooks, Device())
    clock.until, clock.until_ns = 9, 1 << 62
    steps(clock, 2)
    clock.handed_over(LANE, 0, None)
    clock.log.append(clock)
    gone = weakref.ref(clock)
    del clock
    gc.collect()
    assert gone() is None


def test_a_method_is_called_or_noticed(hooks):
    asked = []

    def ask(*args):
        asked.append(args)
        return "subclass" in args

    class Tensor:
        def of(self, *args, **kwargs):
            return ("itself", args, kwargs)

    noticed = lambda *args, **kwargs: ("noticed", args[1:], kwargs)  # noqa: E731
    method = Tensor.of = hooks.Noticing(Tensor.of, ask, noticed)
    tensor = Tensor()
    assert tensor.of(1, b=2) == ("itself", (1,), {"b": 2})
    assert asked == [(tensor, 1, 2)]
    assert tensor.of("subclass") == ("noticed", ("subclass",), {})
    method.on = True
    assert Tensor.of(tensor, 1, b=2) == ("noticed", (1,), {"b": 2})
    bound = tensor.of
    assert bound(b=3) == ("noticed", (), {"b": 3})
    method.on = False
    assert bound(b=3) == ("itself", (), {"b": 3})


def test_in_all_else_it_is_the_method(hooks):
    method = hooks.Noticing(str.upper, lambda *args: False, None)
    assert method == str.upper and str.upper == method and method != str.lower and method != hooks
    assert method in {str.upper} and str.upper in {method}
    assert (repr(method), method.__name__) == (repr(str.upper), "upper")
    assert method.__doc__ == str.upper.__doc__
    assert pickle.loads(pickle.dumps(method)) is str.upper
    with pytest.raises(AttributeError):
        _ = method.nothing
