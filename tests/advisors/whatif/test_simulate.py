"""The simulated DataLoader against loops whose speed can be worked out by hand. Times are in ms
throughout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaderscope.advisors.whatif.simulate import Epoch, Setting, Times, epoch

COUNT = 200


def times(count: int = COUNT, **values: Any) -> Times:
    """Constant times, or a list of them; what is not named takes none."""
    names = [
        "work_cpu",
        "work_idle",
        "send",
        "receive",
        "pin_cpu",
        "draw",
        "compute_cpu",
        "compute_idle",
    ]
    assert set(values) <= set(names)
    told = {name: values.get(name, 0.0) for name in names}
    lists = {n: list(v) if isinstance(v, list) else [float(v)] * count for n, v in told.items()}
    return Times(**lists)


def setting(workers: int, **values: Any) -> Setting:
    usual = {
        "prefetch": 2,
        "in_order": True,
        "pin": False,
        "cpus": 1000.0,
        "compute_weight": 1.0,
        "start_ns": 0.0,
        "cold_ns": 0.0,
        "hop_ns": 0.0,
        "more_tasks": True,
    }
    return Setting(workers=workers, **{**usual, **values})


def a_step(found: Epoch) -> float:
    """Mean time of a step in the second half."""
    half = len(found.ends) // 2
    return (found.ends[-1] - found.ends[half - 1]) / (len(found.ends) - half)


@pytest.mark.parametrize(
    ("parts", "workers", "facts", "step"),
    [
        # Workers that only wait add up until the loop is the limit.
        *(
            ({"work_idle": 10, "compute_idle": 2}, workers, {}, pytest.approx(step, rel=0.02))
            for workers, step in ((0, 12), (1, 10), (2, 5), (4, 2.5), (5, 2), (8, 2))
        ),
        # Those that compute share the cores.
        *(
            ({"work_cpu": 10}, workers, {"cpus": 3.0}, pytest.approx(step, rel=0.05))
            for workers, step in ((1, 10), (2, 5), (3, 10 / 3), (4, 10 / 3), (12, 10 / 3))
        ),
        # Two cores, 8 ms of work a batch in three workers, 4 ms of computing in main: 12 ms of CPU a step.
        ({"work_cpu": 8, "compute_cpu": 4}, 3, {"cpus": 2.0}, pytest.approx(6, rel=0.05)),
        # A loop that wants both cores at once does not get them from busy workers, and its own computing takes
        # longer: 8 + 2 cores x 4 of CPU, on two cores.
        (
            {"work_cpu": 8, "compute_cpu": 4},
            3,
            {"cpus": 2.0, "compute_weight": 2.0},
            pytest.approx(8, rel=0.05),
        ),
        ({"work_cpu": 2, "compute_cpu": 1}, 0, {"cpus": 0.5}, pytest.approx(6)),
        ({"work_cpu": 2}, 2, {"cpus": 0.5}, pytest.approx(4, rel=0.05)),
        # Taking batches out of the queue limits the loop; a pin thread works beside it.
        ({"work_idle": 1, "receive": 3, "compute_idle": 2}, 8, {}, pytest.approx(5)),
        (
            {"work_idle": 1, "receive": 1, "pin_cpu": 3, "compute_idle": 2},
            8,
            {"pin": True},
            pytest.approx(3),
        ),
        (
            {"work_idle": 1, "receive": 1, "pin_cpu": 7, "compute_idle": 2},
            8,
            {"pin": True},
            pytest.approx(7),
        ),
    ],
)
def test_how_long_a_step_takes(
    parts: dict[str, float], workers: int, facts: dict[str, Any], step: Any
) -> None:
    found = epoch(times(**parts), setting(workers, **facts))
    assert a_step(found) == step


def test_one_slow_batch_blocks_ready_ones_only_in_order() -> None:
    def steps(loop: Times, workers: int, **how: Any) -> tuple[float, float]:
        found = (epoch(loop, setting(workers, in_order=each, **how)) for each in (True, False))
        in_order, free = map(a_step, found)
        return in_order, free

    work = [60.0 if k % 10 == 0 else 2.0 for k in range(COUNT)]
    in_order, free = steps(times(work_idle=work, compute_idle=4.0), 3)
    # 78 ms of work for ten batches: three workers have room for a batch every 2.6 ms, and the loop
    # wants one every 4.
    assert free == pytest.approx(4, rel=0.1)
    assert in_order > 1.4 * free
    # Order does not matter where workers are always busy.
    work = [40.0 if k % 7 == 0 else 10.0 for k in range(COUNT)]
    in_order, free = steps(times(work_idle=work), 2, prefetch=8)
    assert free == pytest.approx(in_order, rel=0.06)


def test_prefetching_absorbs_variance_and_nothing_else() -> None:
    varied = times(work_idle=[34.0 if k % 10 == 0 else 4.0 for k in range(COUNT)], compute_idle=4.0)
    near, far = (a_step(epoch(varied, setting(2, prefetch=p))) for p in (1, 16))
    assert near > 1.3 * far
    steady = times(work_idle=10.0, compute_idle=1.0)
    near, far = (a_step(epoch(steady, setting(2, prefetch=p))) for p in (2, 16))
    assert near == pytest.approx(far, rel=0.02)


def test_the_first_batch_waits_for_start_draws_and_cold_workers() -> None:
    found = epoch(
        times(work_idle=10, draw=1, compute_idle=2), setting(2, start_ns=100.0, cold_ns=30.0)
    )
    # start 100, one draw 1, cold 30, work 10, compute 2
    assert found.ends[0] == pytest.approx(143)
    # main sends all four tasks before it takes the first batch, which is never later than that here
    assert epoch(times(draw=50, compute_idle=2), setting(2)).ends[0] == pytest.approx(202)


def test_an_epoch_of_fewer_batches_than_workers_ends() -> None:
    found = epoch(times(3, work_idle=10, compute_idle=1), setting(8, more_tasks=False))
    assert found.ends == pytest.approx([11, 12, 13])
    assert found.worked == 3


def test_the_time_of_work_includes_waiting_for_a_core() -> None:
    found = epoch(times(work_cpu=10), setting(4, cpus=2.0, prefetch=1))
    assert found.work_ns / found.worked == pytest.approx(20, rel=0.05)


@given(
    work_cpu=st.lists(st.floats(0, 50), min_size=20, max_size=20),
    work_idle=st.lists(st.floats(0, 50), min_size=20, max_size=20),
    compute=st.floats(0, 20),
    receive=st.floats(0, 2),
    workers=st.integers(0, 6),
    prefetch=st.integers(1, 4),
    cpus=st.floats(0.2, 8),
    in_order=st.booleans(),
    pin=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_no_loop_is_faster_than_its_parts_or_slower_than_their_sum(
    work_cpu: list[float],
    work_idle: list[float],
    compute: float,
    receive: float,
    workers: int,
    prefetch: int,
    cpus: float,
    in_order: bool,
    pin: bool,
) -> None:
    """Asserts that batches end in order, not before the slowest part can have made them all, and
    not later than all parts one after another would."""
    parts = {"compute_cpu": compute, "receive": receive, "pin_cpu": receive}
    loop = times(20, work_cpu=work_cpu, work_idle=work_idle, **parts)
    how = {"prefetch": prefetch, "cpus": cpus, "in_order": in_order, "pin": pin}
    found = epoch(loop, setting(workers, more_tasks=False, **how))
    cpu = sum(work_cpu) + 20 * (compute + receive)
    assert len(found.ends) == 20
    assert found.ends == sorted(found.ends)
    assert found.ends[-1] >= 0.999 * max(
        cpu / cpus if workers else 0, 20 * (compute + receive), *work_idle
    )
    everything = (cpu + 20 * receive) * max(1.0, 1 / cpus) + sum(work_idle)
    assert found.ends[-1] <= 1.001 * everything + 1e-6
