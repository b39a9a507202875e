"""Which steps of a window count, and what they say of the loop's waiting."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.window import HELD, WINDOW_S, Window

OWN, WORKERS = Settings(0), Settings(4)
MS = 1_000_000


def played(found: Window, steps: Iterable[tuple[float, float]], since_ns: int = 0) -> bool:
    """Steps of (wait, own work) in ms; whether they were enough."""
    t_ns, over = since_ns, found.handed(since_ns, 0)
    for wait_ms, own_ms in steps:
        t_ns += int((wait_ms + own_ms) * MS)
        over = found.handed(t_ns, int(wait_ms * MS))
        if over:
            break
    return over


def bursts(own_ms: float = 0.02) -> Iterable[tuple[float, float]]:
    """Four workers that wait alike deliver at once."""
    return itertools.cycle([(0.1 - own_ms, own_ms)] * 3 + [(37.0 - own_ms, own_ms)])


@pytest.mark.parametrize("phase", range(4))
def test_bursts_of_workers_are_waited_for_wherever_a_window_begins(phase: int) -> None:
    found = Window(WORKERS, left_out=0)
    assert played(found, itertools.islice(bursts(), phase, None))
    assert found.rate == pytest.approx(4 / 0.0373, rel=1e-6) and len(found.steps_s) % 4 == 0


def test_only_a_pause_of_the_loop_s_own_work_counts_for_nothing() -> None:
    found = Window(OWN, left_out=2)
    usual = (90.0, 10.0)
    steps = [*[(9000.0, 0.0)] * 2, *[usual] * 6, (90.0, 60_000.0), *[usual] * 9]
    assert played(found, steps)
    assert max(found.steps_s) > 60 and found.rate == pytest.approx(10.0)
    assert found.times == pytest.approx((0.1 * 7, 0.01 * 7))
    found = Window(OWN, left_out=0)
    assert played(found, [*[(90.0, 10.0)] * 6, (60_000.0, 10.0), (90.0, 10.0)])
    assert found.rate == pytest.approx(8 / 60.71, rel=0.01)
    unknown = Window(OWN, left_out=0)
    for second in (0, 1, 2, 3, 4, 5, 6, 7, 68):
        unknown.handed(second * 10**9, None)
    assert unknown.rate == pytest.approx(8 / 68) and unknown.times[1] is None


def test_what_workers_made_ahead_during_a_pause_does_not_count_either() -> None:
    found = Window(WORKERS, left_out=0)
    ready = [(0.1, 0.1)] * WORKERS.ahead  # handed over from what was made meanwhile
    steps = [*[(30.0, 0.1)] * 12, (0.1, 60_000.0), *ready]
    played(found, itertools.chain(steps, itertools.repeat((30.0, 0.1), 3)))
    assert found.rate == pytest.approx(1 / 0.0301, rel=1e-3)
    found = Window(OWN, left_out=0)
    assert played(found, itertools.cycle([(1.0, 1.0)] * 7 + [(1.0, 100.0)]))
    assert found.rate == pytest.approx(8 / 0.115, rel=0.1)


def test_what_lies_between_two_iterations_is_no_step() -> None:
    found = Window(OWN, left_out=0)
    played(found, [(90.0, 10.0)] * 3)
    found.broken(1)
    for t_s in (200, 201, 202):
        found.handed(t_s * 10**9, 0)
    assert found.steps_s == pytest.approx([0.1, 0.1, 0.1, 1.0])
    held_ns = int(2 * HELD * WINDOW_S * 1e9)
    found = Window(WORKERS, left_out=0)
    for step in range(10):
        found.handed(step * 10 * MS, 0)
    found.handed(300 * MS, 0, held_ns)
    for step in range(WORKERS.ahead + 1):
        found.handed((301 + step) * MS, 0)
    assert found.steps_s == pytest.approx([0.01] * 9)
    found.handed(320 * MS, 0)
    found.handed(330 * MS, 0, held_ns // 4)  # too little to matter
    assert found.steps_s == pytest.approx([*[0.01] * 9, 0.01 - held_ns / 4e9])


@pytest.mark.parametrize(("wait_ms", "waits"), [(1, False), (30, True)])
def test_a_loop_that_waits_for_nothing_has_nothing_to_gain(wait_ms: float, waits: bool) -> None:
    found = Window(OWN, left_out=0)
    assert played(found, itertools.repeat((wait_ms, 100.0 - wait_ms)))
    assert found.waits == waits
