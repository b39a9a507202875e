"""The simulated DataLoader against loops that can be worked out by hand, times in ms; its costs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaderscope.advisors.stage_model.wait_kinds import WaitKinds
from loaderscope.advisors.whatif.costs import method_of
from loaderscope.advisors.whatif.sharing import Sharing, sharing_of
from loaderscope.advisors.whatif.simulate import Epoch, Setting, Times, epoch

COUNT = 200


def times(count: int = COUNT, **values: Any) -> Times:
    """Constant times, or a list of them; what is not named takes none."""
    told = {**dict.fromkeys(Times._fields[:8], 0.0), **values}
    lists = {n: list(v) if isinstance(v, list) else [float(v)] * count for n, v in told.items()}
    return Times(**lists)


def setting(workers: int, **values: Any) -> Setting:
    usual = {"prefetch": 2, "in_order": True, "pin": False, "cpus": 1000.0, "compute_weight": 1.0}
    usual |= {**dict.fromkeys(("start_ns", "cold_ns", "hop_ns"), 0.0), "more_tasks": True}
    return Setting(workers=workers, **{**usual, **values})


def a_step(found: Epoch) -> float:
    half = len(found.ends) // 2
    return (found.ends[-1] - found.ends[half - 1]) / (len(found.ends) - half)


BUSY, TAKING = {"work_cpu": 8}, {"work_idle": 1, "compute_idle": 2}
BOTH_CORES = pytest.approx(8, rel=0.05)


@pytest.mark.parametrize(
    ("parts", "workers", "facts", "step"),
    [
        # Workers that only wait add up until the loop is the limit; those that compute share cores.
        ({"work_idle": 10, "compute_idle": 2}, 4, {}, pytest.approx(2.5, rel=0.02)),
        ({"work_cpu": 10}, 12, {"cpus": 3.0}, pytest.approx(10 / 3, rel=0.05)),
        # Of 12 ms of CPU a step, on two cores. What wants both at once does not get them from busy
        # workers, and takes longer: 8 + 2 cores x 4 of CPU.
        ({**BUSY, "compute_cpu": 4}, 3, {"cpus": 2.0}, pytest.approx(6, rel=0.05)),
        ({**BUSY, "compute_cpu": 4}, 3, {"cpus": 2.0, "compute_weight": 2.0}, BOTH_CORES),
        ({"work_cpu": 2, "compute_cpu": 1}, 0, {"cpus": 0.5}, pytest.approx(6)),
        ({"work_cpu": 2}, 2, {"cpus": 0.5}, pytest.approx(4, rel=0.05)),
        # Taking batches out of the queue limits the loop; a pin thread works beside it.
        ({**TAKING, "receive": 3}, 8, {}, pytest.approx(5)),
        ({**TAKING, "receive": 1, "pin_cpu": 3}, 8, {"pin": True}, pytest.approx(3)),
        ({**TAKING, "receive": 1, "pin_cpu": 7}, 8, {"pin": True}, pytest.approx(7)),
    ],
)
def test_how_long_a_step_takes(parts: Any, workers: int, facts: dict[str, Any], step: Any) -> None:
    found = epoch(times(**parts), setting(workers, **facts))
    assert a_step(found) == step


def test_prefetching_absorbs_variance_and_nothing_else() -> None:
    varied = times(work_idle=[34.0 if k % 10 == 0 else 4.0 for k in range(COUNT)], compute_idle=4.0)
    near, far = (a_step(epoch(varied, setting(2, prefetch=p))) for p in (1, 16))
    assert near > 1.3 * far
    steady = times(work_idle=10.0, compute_idle=1.0)
    near, far = (a_step(epoch(steady, setting(2, prefetch=p))) for p in (2, 16))
    assert near == pytest.approx(far, rel=0.02)


def test_out_of_order_whoever_has_room_is_given_the_next() -> None:
    slow = times(work_idle=[60.0 if k % 10 == 0 else 2.0 for k in range(COUNT)], compute_idle=3.0)
    kept, free = (a_step(epoch(slow, setting(3, in_order=order))) for order in (True, False))
    assert kept > 1.2 * free
    assert free == pytest.approx(3.0, rel=0.1)  # of the work, the three do ten batches in 26 ms


def test_an_epoch_of_fewer_batches_than_workers_ends() -> None:
    found = epoch(times(3, work_idle=10, compute_idle=1), setting(8, more_tasks=False))
    assert found.ends == pytest.approx([11, 12, 13])
    assert found.worked == 3


WORK = st.lists(st.floats(0, 50), min_size=20, max_size=20)
HOW = {"prefetch": st.integers(1, 4), "cpus": st.floats(0.2, 8)}
HOW |= {"in_order": st.booleans(), "pin": st.booleans()}


@given(WORK, WORK, st.floats(0, 20), st.floats(0, 2), st.integers(0, 6), st.fixed_dictionaries(HOW))
@settings(max_examples=150, deadline=None)
def test_no_loop_is_faster_than_its_parts_or_slower_than_their_sum(
    work_cpu: Any, work_idle: Any, compute: float, receive: float, workers: int, how: Any
) -> None:
    parts = {"compute_cpu": compute, "receive": receive, "pin_cpu": receive}
    loop = times(20, work_cpu=work_cpu, work_idle=work_idle, **parts)
    found, cpus = epoch(loop, setting(workers, more_tasks=False, **how)), how["cpus"]
    cpu = sum(work_cpu) + 20 * (compute + receive)
    assert len(found.ends) == 20
    assert found.ends == sorted(found.ends)
    slowest = max(cpu / cpus if workers else 0, 20 * (compute + receive), *work_idle)
    assert found.ends[-1] >= 0.999 * slowest
    everything = (cpu + 20 * receive) * max(1.0, 1 / cpus) + sum(work_idle)
    assert found.ends[-1] <= 1.001 * everything + 1e-6


def batch_ms(workers: int, idle_ms: float, cpu_ms: float = 0.0, held: float = 0.0) -> float:
    """Time of a batch; of its work, this part is done while holding a lock."""
    parts = times(400, work_cpu=cpu_ms, work_idle=idle_ms)
    if held:
        inside = {"held_cpu": [cpu_ms * held] * 400, "held_idle": [idle_ms * held] * 400}
        parts = parts._replace(**inside)
    return a_step(epoch(parts, setting(workers, cpus=8.0)))


@pytest.mark.parametrize(("idle", "cpu"), [(8.0, 0.0), (0.0, 8.0)])
def test_what_is_done_under_a_lock_is_done_one_after_another(idle: float, cpu: float) -> None:
    free = batch_ms(4, idle, cpu)
    assert free == pytest.approx(2.0, rel=0.05)
    assert batch_ms(4, idle, cpu, held=1.0) == pytest.approx(8.0, rel=0.02)
    assert batch_ms(16, idle, cpu, held=0.5) == pytest.approx(4.0, rel=0.05)
    # A lock held for a short time holds nobody up.
    assert batch_ms(4, idle, cpu, held=0.05) == pytest.approx(free, rel=0.1)


@pytest.mark.parametrize(("workers", "held"), [(2, 0.6), (8, 0.1), (8, 0.6)])
def test_how_long_a_lock_is_held_follows_from_waiting_for_it(workers: int, held: float) -> None:
    """Workers whose times vary, as a queue's do; the model is told what sampling would see."""
    random = np.random.default_rng(3)
    times = random.exponential(10.0, (2, workers, 4000))
    think, inside = times[0] * (1 - held), times[1] * held
    free_at = waited = 0.0
    begins, done = np.zeros(workers), np.zeros(workers, int)
    while done.max() < 3999:
        who = int(np.argmin(begins + think[range(workers), np.minimum(done, 3999)]))
        asks = begins[who] + think[who, done[who]]
        gets = max(asks, free_at)
        waited += gets - asks
        free_at = begins[who] = gets + inside[who, done[who]]
        done[who] += 1
    total, batches = float(begins.max()) * workers, int(done.sum())
    work, step = total / batches, total / workers / batches
    shared = waited / total
    kinds = WaitKinds({"shared lock": 1.0}, shared)
    found = sharing_of(kinds, workers, step, work, shared * work)
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
def test_what_waits_are_for_workers_that_do_not_exist_yet(kinds: Any, told: Sharing) -> None:
    found = sharing_of(kinds, 0, 12.0, 10.0, 8.0)
    parts, expected = ((s.queued, s.computed, s.unknown, s.held) for s in (found, told))
    assert (parts, found.certain) == (pytest.approx(expected, abs=0.011), told.unknown == 0)


def test_the_kernel_is_in_doubt_only_where_it_is_much_and_not_measured_yet() -> None:
    found = [
        sharing_of(shares(sleep=1.0), workers, 12.0, 10.0, 8.0, kernel)
        for workers, kernel in ((0, 0.1), (0, 0.5), (1, 0.5), (2, 0.5))
    ]
    assert [each.kernel for each in found] == [0.0, 0.5, 0.5, 0.0]
    assert [each.certain for each in found] == [True, False, False, True]
    worst = found[1].at_worst(1, 0.8)
    assert (worst.held, worst.kernel) == (0.5, 0.0)


def test_at_worst_the_unknown_is_one_lock_which_more_workers_only_wait_for() -> None:
    """Four workers, 8 ms of unknown idle time a batch: as fast as now with eight."""
    worst = Sharing(unknown=1.0).at_worst(4, 1.0)
    assert (worst.queued, worst.held) == (0.75, 1.0)
    idle_ms = 8.0 * (1 - worst.queued)
    now, more = (batch_ms(workers, idle_ms, held=worst.held) for workers in (4, 8))
    assert now == pytest.approx(2.0, rel=0.05) and more == pytest.approx(now, rel=0.05)


def test_the_start_method_told_or_the_default() -> None:
    assert method_of("spawn", "3.11.2") == "spawn"
    assert [method_of(None, python) for python in ("3.13.9", "3.14.0")] == ["fork", "forkserver"]
    assert method_of(None, None) == method_of(7, "rubbish") == "fork"
