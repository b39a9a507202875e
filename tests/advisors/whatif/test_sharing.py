"""What workers share, and costs that were not measured: carried over from the reference machine."""

from __future__ import annotations

import numpy as np
import pytest

from loaderscope.advisors.stage_model.wait_kinds import WaitKinds
from loaderscope.advisors.whatif.costs import (
    FASTEST,
    REFERENCE_OTHER_NS,
    SLOWEST,
    handover,
    method_of,
    speed_of,
    start_ns,
)
from loaderscope.advisors.whatif.sharing import Sharing, sharing_of
from loaderscope.advisors.whatif.simulate import Setting, Times, epoch

MS = 1e6


def batch_ms(workers: int, idle_ms: float, cpu_ms: float = 0.0, held: float = 0.0, cpus=8.0):  # type: ignore[no-untyped-def]
    """Time of a batch in ms, by simulation."""
    zeros = [0.0] * 400
    idle, cpu = [idle_ms * MS] * 400, [cpu_ms * MS] * 400
    parts = [[value * held for value in values] for values in (cpu, idle)] if held else [[], []]
    times = Times(cpu, idle, zeros, zeros, zeros, zeros, zeros, zeros, *parts)
    setting = Setting(workers, 2, True, False, cpus, 1.0, 0.0, 0.0, 0.0, more_tasks=True)
    ends = epoch(times, setting).ends
    return (ends[-1] - ends[99]) / 300 / MS


@pytest.mark.parametrize(("idle", "cpu"), [(8.0, 0.0), (0.0, 8.0), (4.0, 4.0)])
def test_what_is_done_while_holding_a_lock_is_done_one_after_another(
    idle: float, cpu: float
) -> None:
    free = batch_ms(4, idle, cpu)
    assert free == pytest.approx(2.0, rel=0.05)
    assert batch_ms(4, idle, cpu, held=1.0) == pytest.approx(8.0, rel=0.02)
    assert batch_ms(16, idle, cpu, held=0.5) == pytest.approx(4.0, rel=0.05)
    # A lock held for a short time holds nobody up.
    assert batch_ms(4, idle, cpu, held=0.05) == pytest.approx(free, rel=0.1)


@pytest.mark.parametrize("workers", [2, 4, 8])
@pytest.mark.parametrize("held", [0.1, 0.3, 0.6])
def test_how_long_a_lock_is_held_follows_from_how_long_it_is_waited_for(
    workers: int, held: float
) -> None:
    """Workers whose times vary, as those of a queue do; the model is told what sampling would
    see."""
    random = np.random.default_rng(3)
    times = random.exponential(10.0, (2, workers, 4000))
    think, inside = times[0] * (1 - held), times[1] * held
    free_at = waited = 0.0
    begins, done = np.zeros(workers), np.zeros(workers, int)
    while done.min() < 3999:
        who = int(np.argmin(begins + think[range(workers), np.minimum(done, 3999)]))
        asks = begins[who] + think[who, done[who]]
        gets = max(asks, free_at)
        waited += gets - asks
        free_at = begins[who] = gets + inside[who, done[who]]
        done[who] += 1
        if done[who] == 3999:
            break
    total, batches = float(begins.max()) * workers, int(done.sum())
    work, step = total / batches, total / workers / batches
    shared = waited / total
    kinds = WaitKinds({"shared lock": 1.0}, shared)
    found = sharing_of(kinds, workers, step, work, shared * work, 0.0)
    assert found.queued == 1.0 and found.certain
    assert found.held == pytest.approx(held, abs=0.1)


def shares(**kinds: float) -> WaitKinds:
    return WaitKinds({name.replace("_", " "): share for name, share in kinds.items()}, 0.0)


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (shares(sleep=0.5, disk=0.3, network=0.1, child_waits=0.1), Sharing()),
        (shares(gil=0.25, child=0.25, sleep=0.5), Sharing(computed=0.5)),
        (shares(server=0.5, server_waits=0.5), Sharing(held=0.4)),
        (shares(unknown=0.3, pipe=0.2, lock=0.1, sleep=0.4), Sharing(unknown=0.6)),
        (shares(sleep=0.99, unknown=0.01), Sharing()),
        (None, Sharing(unknown=1.0)),
    ],
)
def test_what_waits_are_for_workers_that_do_not_exist_yet(
    kinds: WaitKinds | None, told: Sharing
) -> None:
    found = sharing_of(kinds, 0, 12.0, 10.0, 8.0, 0.1)
    for name in ("queued", "computed", "unknown", "held", "kernel"):
        assert getattr(found, name) == pytest.approx(getattr(told, name), abs=0.011), name
    assert found.certain == (told.unknown == 0)


def test_the_kernel_is_in_doubt_only_where_it_is_much_and_not_measured_yet() -> None:
    assert [
        sharing_of(shares(sleep=1.0), workers, 12.0, 10.0, 8.0, kernel).kernel
        for workers, kernel in ((0, 0.1), (0, 0.5), (1, 0.5), (2, 0.5))
    ] == [0.0, 0.5, 0.5, 0.0]
    worst = sharing_of(shares(sleep=1.0), 0, 12.0, 10.0, 8.0, 0.5).at_worst(0, 0.8)
    assert (worst.held, worst.held_cpu, worst.kernel) == (0.0, 0.5, 0.0)


def test_at_worst_the_unknown_is_one_lock_which_more_workers_only_wait_for() -> None:
    """Four workers, 8 ms of unknown idle time a batch: as fast as now with eight."""
    worst = Sharing(unknown=1.0).at_worst(4, 1.0)
    assert (worst.queued, worst.held) == (0.75, 1.0)
    idle_ms = 8.0 * (1 - worst.queued)
    now, more = (batch_ms(workers, idle_ms, held=worst.held) for workers in (4, 8))
    assert now == pytest.approx(2.0, rel=0.05) and more == pytest.approx(now, rel=0.05)


@pytest.mark.parametrize(
    ("factor", "speed"),
    [
        (1.0, 1.0),
        (1.5, 1.0),
        (2.25, 1.5),
        (0.36, 0.6),
        (50.0, SLOWEST),
        (0.001, FASTEST),
        (0.0, 1.0),
        (-3.0, 1.0),
    ],
)
def test_a_machine_is_as_slow_as_torchs_own_lines_within_bounds(
    factor: float, speed: float
) -> None:
    assert speed_of(factor * REFERENCE_OTHER_NS) == pytest.approx(speed)


def test_a_machine_of_unknown_speed_is_the_reference() -> None:
    assert speed_of(None) == 1.0


def test_more_costs_more() -> None:
    small, large = handover(1, 100, 0, 1.0), handover(40, 8e6, 1e6, 1.0)
    for name in ("pack_ns", "unpack_ns", "pin_ns"):
        assert getattr(large, name) > 5 * getattr(small, name)
    assert large.receive_ns == small.receive_ns
    assert handover(1, 100, 0, 2.0).pack_ns == pytest.approx(2 * small.pack_ns)


def test_workers_that_import_share_the_cores() -> None:
    assert start_ns("fork", 0, 2, 1.0) == 0
    assert start_ns("spawn", 1, 2, 1.0) > 10 * start_ns("fork", 1, 2, 1.0)
    assert start_ns("spawn", 8, 2, 1.0) > 3 * start_ns("spawn", 8, 8, 1.0)


@pytest.mark.parametrize(
    ("told", "python", "method"),
    [
        ("spawn", "3.11.2", "spawn"),
        (None, "3.13.9", "fork"),
        (None, "3.14.0", "forkserver"),
        (None, None, "fork"),
        (7, "rubbish", "fork"),
    ],
)
def test_the_start_method_told_or_the_default(
    told: object, python: str | None, method: str
) -> None:
    assert method_of(told, python) == method
