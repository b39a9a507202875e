"""What is read out of a run for the simulation: work, what comes once an epoch, what is neither."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import MS, T0, epoch_row, loop, opened
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import WhatIf, costs
from loaderscope.advisors.whatif.costs import STOP_NS
from loaderscope.advisors.whatif.pipeline import made_in_main
from loaderscope.advisors.whatif.recorded import BLOCK_ROWS, MAX_ROWS, TooLittle, spread
from loaderscope.advisors.whatif.workload import Workload, workload_of
from loaderscope.profiler.store.run.tuning import Switch, Tuned
from workloads import Rows, alone, starved, workload


def from_workers(n: int, wait_ms: float, compute_ms: float, ready: bool, **columns: Any) -> Rows:
    """Batches of 5 ms of work, sent 20 ms before they are taken (`ready`), or just before."""
    early = 20 * MS if ready else 0
    begun = lambda n, t, w: t - early - 5 * MS  # noqa: E731
    made = {"index_ns": 0, "fetch_ns": 5 * MS, "collate_ns": 0, "pack_ns": 0, "task": 0}
    sent = {"unpack_ns": MS // 10, "queued_ns": early + MS // 5, "t_fetch_ns": begun}
    return loop(n, wait_ms, compute_ms, **{**made, **sent, **columns})


def test_rows_of_a_long_run_are_blocks_spread_over_it() -> None:
    rows = spread(1_000_000)
    assert 0.9 * MAX_ROWS < len(rows) <= MAX_ROWS
    assert rows[0] == 0 and rows[-1] == 999_999
    inside = np.diff(rows) == 1
    assert inside.mean() == pytest.approx(1 - 1 / BLOCK_ROWS, abs=0.001)
    assert spread(50).tolist() == list(range(50))


def test_cpu_time_measured_on_some_batches_stands_for_all(tmp_path: Path) -> None:
    cpu = lambda n, t, w: -1 if n % 4 else 2 * MS  # noqa: E731
    found = workload(tmp_path, loop(64, 10, 5, fetch_ns=8 * MS, fetch_cpu_ns=cpu))
    assert found.fetch_cpu_ns.mean() == pytest.approx(2 * MS)
    assert found.fetch_idle_ns.mean() == pytest.approx(6 * MS)
    assert found.compute_cores is None  # without samples


def test_what_taking_a_batch_costs_is_seen_on_ready_ones(tmp_path: Path) -> None:
    config = {"num_workers": 2}
    ready = workload(tmp_path / "ready", from_workers(50, 0.4, 5, ready=True), config=config)
    assert ready.receive_ns == pytest.approx(0.3 * MS)  # of 0.4 ms in next(), 0.1 are unpacking
    awaited = workload(tmp_path / "awaited", from_workers(50, 4, 5, ready=False), config=config)
    assert awaited.receive_ns == pytest.approx(0.2 * MS)  # from its sending until it was taken


def of_main(cores: float, waiting: float = 0) -> Rows:
    """Samples, a second apart, of a main process that used so many cores, or was ready to."""
    used = {"pid": 4000, "role": 0, "cpu_system_ns": 0}
    spent = {"cpu_user_ns": cores, "run_delay_ns": waiting}
    times = ((s * 10**9, {name: round(of * s * 1e9) for name, of in spent.items()}) for s in (0, 1))
    return [{**used, "t_ns": T0 + t, **each} for t, each in times]


@pytest.mark.parametrize(("cores", "computing"), [(0.0, 0.0), (1.5, 3.0), (9.0, 4.0)])
def test_cores_used_while_computing(tmp_path: Path, cores: float, computing: float) -> None:
    # Half of each step is waiting for workers, in which main is idle. It has four threads.
    rows = from_workers(200, 5, 5, ready=False, queued_ns=0, unpack_ns=0)
    found = workload(tmp_path, rows, config={"num_workers": 2}, samples=of_main(cores))
    assert found.compute_cores == pytest.approx(computing)


@pytest.mark.parametrize(("pause_ms", "stop_ms"), [(30, 30), (60_000, 2 * STOP_NS / MS)])
def test_a_long_pause_is_not_the_end_of_workers(tmp_path, pause_ms, stop_ms):
    rows, epochs, t = [], [], T0
    for number in range(4):
        some = from_workers(12, 4, 5, ready=False, epoch=number, start_ns=t)
        some[0]["t_fetch_ns"], some[0]["fetch_ns"] = t - 50 * MS, 25 * MS
        some[1]["fetch_ns"], some[1]["pack_ns"] = 15 * MS, 10 * MS  # of the other worker
        rows += some
        epochs.append({**epoch_row(some), "t_iter_ns": t - 90 * MS, "num_workers": 2})
        t = epochs[-1]["t_end_ns"] + (90 + pause_ms) * MS
    found = workload(tmp_path, rows, epochs=epochs, config={"num_workers": 2})
    assert found.stop_ns == pytest.approx(stop_ms * MS)
    assert found.start_ns == pytest.approx(40 * MS)
    assert found.cold_ns == pytest.approx(20 * MS)
    assert found.rows == 4 * 10 and found.fetch_cpu_ns.max() <= 5 * MS and found.pack_ns.max() == 0
    assert found.epoch_batches == 12
    assert found.measured_batch_ns == pytest.approx((90 + 12 * 9 + stop_ms) * MS / 12, rel=0.01)


def test_a_first_fetch_that_is_long_in_each_epoch_counts_without_workers(tmp_path: Path) -> None:
    rows, epochs, t = [], [], T0
    for number in range(4):
        some = loop(12, 10, 5, fetch_ns=8 * MS, epoch=number, start_ns=t)
        some[0]["fetch_ns"] = 100 * MS
        rows += some
        epochs.append({**epoch_row(some), "t_iter_ns": t})
        t = epochs[-1]["t_end_ns"] + MS
    assert workload(tmp_path, rows, epochs=epochs).cold_ns == pytest.approx(92 * MS)


def test_the_length_of_an_epoch_that_has_not_ended(tmp_path: Path) -> None:
    rows = loop(50, 10, 5, fetch_ns=8 * MS)
    epochs = [{**epoch_row(rows), "how": -1, "batches": 0}]
    for config, batches in (({"dataset_len": 4000, "batch_size": 4}, 1000), (None, 50)):
        found = workload(tmp_path / str(batches), rows, epochs=epochs, config=config)
        assert found.epoch_batches == batches


def test_epochs_made_with_other_settings_do_not_count(tmp_path: Path) -> None:
    """While a loader is tuned, some epochs are those of a candidate."""
    rows, epochs, switches = Rows(), Rows(), []
    own, other = {"num_workers": 0, "batched": False}, {"num_workers": 0, "batched": True}
    for number, (fetch_ms, settings) in enumerate(((10.0, own), (1.0, other)) * 2):
        start = rows[-1]["t_ns"] + 100 * MS if rows else T0
        lane = alone(fetch_ms, fetch_ms, 1.0, 80, epoch=number, start_ns=start)
        rows += lane
        epochs.append(epoch_row(lane))
        switches.append(Switch(start - 1, number, 0, settings))
    run = opened(tmp_path, rows, epochs=epochs)
    tuning = Tuned(own, own, True, "", (), tuple(switches))
    tuned = replace(run.loaders[0], tuning=tuning).as_coded()
    found = workload_of(run, run.processes[0], tuned)
    assert found.measured_inner_ns == pytest.approx(11.1 * MS, rel=0.02)
    assert found.measured_batch_ns == pytest.approx(11.1 * MS, rel=0.1)
    assert workload_of(run, run.processes[0], run.loaders[0]).measured_batch_ns < 8 * MS


@pytest.mark.parametrize(("wait_ms", "enough"), [(1500.0, True), (15.0, False)])
def test_a_few_long_batches_are_enough(tmp_path: Path, wait_ms: float, enough: bool) -> None:
    rows = loop(8, wait_ms, 5, fetch_ns=round(wait_ms * MS), fetch_cpu_ns=MS)
    with contextlib.nullcontext() if enough else pytest.raises(TooLittle):
        found = WhatIf(workload(tmp_path, rows)).predict(fetch=0.5)
        assert found.mid == pytest.approx(2.0, rel=0.1)


def recorded(folder: Path, rows: Rows, epochs: Rows, config=None, samples=None) -> Workload:
    told = {"process": {"affinity": 4}, "overhead": {"hook_ns": 1800.0}, "samples": samples}
    return workload(folder, rows, epochs=epochs, config=config, **told)


def drawn(folder: Path, epochs: int, draw_ms: int = 900) -> Workload:
    """Drawing takes 0.1 ms a batch and `draw_ms` more with the first of an epoch; the rest, 0.2."""
    rows, told = Rows(), Rows()
    parts = {"index_ns": MS // 10, "fetch_ns": MS // 10}
    for epoch in range(epochs):
        start = rows[-1]["t_ns"] + 10 * MS if rows else T0
        own = loop(800, 0.25, 0.05, epoch=epoch, start_ns=start, **parts)
        for name in ("index_ns", "wait_ns"):
            own[0][name] += draw_ms * MS
        for row in own[1:]:
            row["t_ns"] += draw_ms * MS
        rows += own
        told.append(epoch_row(own))
    return recorded(folder, rows, told)


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_permutation_is_drawn_once_an_epoch_and_is_no_noise(tmp_path: Path, epochs: int) -> None:
    found = drawn(tmp_path / "drawn", epochs)
    assert found.draw_ns == pytest.approx(900 * MS, rel=0.01)
    model = WhatIf(found)
    without = model.predict(draw=0.0)
    # 800 batches take 240 ms beside it.
    assert without.mid == pytest.approx((900 + 240) / 240, rel=0.1)
    assert without.low > 0.5 * without.mid and without.high < 2 * without.mid
    assert model.predict(index=0.0).mid > without.mid
    assert model.predict(index=0.0, draw=1.0).mid < 1.2
    none = drawn(tmp_path / "none", 2, draw_ms=0)
    assert none.draw_ns == 0 and WhatIf(none).predict(draw=0.1) == Range(1.0, 1.0, 1.0)


def in_worker(made_ms: float, cpu_ms: float, pack_ms: float) -> tuple[Rows, Rows]:
    """One worker, always at work: each batch is packed while the next is made."""
    begun = lambda n, t, w: T0 - 50 * MS + round(n * made_ms * MS)  # noqa: E731
    sent = {"pack_ns": round(pack_ms * MS), "unpack_ns": 0, "queued_ns": 0, "pickled_bytes": 1000}
    rows = starved(1, made_ms, cpu_ms, 0.1, 120, step_ms=made_ms, t_fetch_ns=begun, **sent)
    return rows, [epoch_row(rows)]


CONFIG = {"num_workers": 1, "persistent_workers": True}


def test_time_without_cpu_beside_packing_was_waiting_for_the_interpreter(tmp_path: Path) -> None:
    """50 ms, of which 5 compute, 45 beside pickling the batch before: 5 without workers."""
    found = recorded(tmp_path / "beside", *in_worker(50.0, 5.0, 45.0), CONFIG)
    alone = recorded(tmp_path / "waits", *in_worker(50.0, 5.0, 0.3), CONFIG)
    away, waits = WhatIf(found).predict(num_workers=0), WhatIf(alone).predict(num_workers=0)
    assert 5 < away.mid < 13 and waits.mid < 1.3
    # Workers that stay still share the interpreter.
    assert WhatIf(found).predict(prefetch_factor=8).mid < 1.2


def test_what_warms_up_is_not_carried_by_a_mean(tmp_path: Path) -> None:
    rows, epochs = in_worker(10.0, 9.0, 0.3)
    kept = {"num_workers": 3, "persistent_workers": True}
    # The first batch of each worker that is kept is no steady one.
    assert recorded(tmp_path / "kept", rows, epochs, kept).rows == len(rows) - 3
    for number, ms in ((1, 1000), (2, 1000), (3, 1000), (80, 300)):  # a slow file may come again
        rows[number]["fetch_ns"] = rows[number]["fetch_cpu_ns"] = ms * MS
    found = recorded(tmp_path / "warm", rows, epochs, CONFIG)
    assert found.fetch_cpu_ns.max() == 300 * MS and np.sort(found.fetch_cpu_ns)[-2] <= 10 * MS


def test_what_main_waited_for_a_core_is_not_drawing(tmp_path: Path) -> None:
    rows, epochs = in_worker(10.0, 9.0, 0.3)
    for row in rows:
        row["index_ns"] = 4 * MS
    quiet = recorded(tmp_path / "quiet", rows, epochs, CONFIG)
    crowded = recorded(tmp_path / "crowded", rows, epochs, CONFIG, of_main(0.5, waiting=0.5))
    assert quiet.index_ns.mean() == 4 * MS and crowded.index_ns.mean() == pytest.approx(2 * MS)


def test_what_recording_took_is_taken_off_whole_epochs(tmp_path: Path) -> None:
    """With workers too: it is recording's, and has nothing to do with packing."""
    rows, epochs = in_worker(10.0, 9.0, 0.3)
    plain = recorded(tmp_path / "plain", rows, epochs, CONFIG)
    noted = [{**row, "own_ns": MS // 20} for row in rows]
    ours = recorded(tmp_path / "noted", noted, epochs, CONFIG)
    assert plain.measured_batch_ns - ours.measured_batch_ns == pytest.approx(MS / 20)
    assert float(np.median(plain.compute_ns - ours.compute_ns)) == pytest.approx(MS / 20)


def test_where_workers_go_their_own_costs_go(tmp_path: Path) -> None:
    """Shared memory made while collating, and cold caches."""
    rows, epochs = in_worker(10.0, 10.0, 0.3)
    for row in rows:
        row |= {"collate_ns": MS // 10, "collate_cpu_ns": MS // 10, "pickled_bytes": 0}
    found = recorded(tmp_path, rows, epochs, CONFIG)
    plan, every = found.plan, np.arange(found.rows)
    kept, _ = made_in_main(found, plan, every)
    fetch, collate = made_in_main(found, replace(plan, num_workers=0), every)
    assert found.shares_in_collate
    assert float(np.median(kept)) == 10 * MS
    assert float(np.median(fetch)) == pytest.approx(10 * MS - costs.COLD_FETCH_MOST_NS)
    assert float(np.median(collate)) == pytest.approx(MS / 10 - costs.SHARED_COLLATE_TENSOR_NS)
    # A new time that was asked for is meant as it is.
    asked = replace(plan, num_workers=0, factors={"fetch": 0.5})
    assert float(made_in_main(found, asked, every)[0].max()) == 10 * MS
