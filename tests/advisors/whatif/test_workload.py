"""What is read out of a run for the simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import MS, T0, RunBuilder, epoch_row, loop
from loaderscope.advisors.whatif import WhatIf
from loaderscope.advisors.whatif.costs import STOP_NS
from loaderscope.advisors.whatif.recorded import BLOCK_ROWS, MAX_ROWS, TooLittle, spread
from loaderscope.advisors.whatif.workload import Workload, workload_of
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.run.tuning import Switch, Tuned


def workload(folder: Path, *lanes: list[dict[str, Any]], **facts: Any) -> Workload:
    run = RunBuilder(folder)
    told = {name: facts.pop(name) for name in ("epochs", "config") if name in facts}
    samples = facts.pop("samples", ())
    run.process(**facts).loader(*lanes, overhead={"hook_ns": 1800.0}, **told)
    if samples:
        run.system(machine=[{"t_ns": T0}], process=samples)
    opened = open_run(run.path)
    return workload_of(opened, opened.processes[0], opened.processes[0].loaders[0])


def from_workers(
    batches: int, wait_ms: float, compute_ms: float, ready: bool, **columns: Any
) -> list[dict[str, Any]]:
    """Batches of 5 ms of work, sent 20 ms before they are taken (`ready`), or just before."""
    early = 20 * MS if ready else 0
    return loop(
        batches,
        wait_ms,
        compute_ms,
        **{
            "index_ns": 0,
            "fetch_ns": 5 * MS,
            "collate_ns": 0,
            "pack_ns": 0,
            "unpack_ns": MS // 10,
            "task": 0,
            "queued_ns": early + MS // 5,
            "t_fetch_ns": lambda n, t, w: t - early - 5 * MS,
            **columns,
        },
    )


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


@pytest.mark.parametrize(("cores", "computing"), [(0.0, 0.0), (0.5, 1.0), (1.5, 3.0), (9.0, 4.0)])
def test_cores_used_while_computing(tmp_path: Path, cores: float, computing: float) -> None:
    # Half of each step is waiting for workers, in which main is idle. It has four threads.
    main = {"pid": 4000, "role": 0, "cpu_system_ns": 0}
    samples = [
        {**main, "t_ns": T0 + s * 10**9, "cpu_user_ns": round(cores * s * 1e9)} for s in (0, 1)
    ]
    rows = from_workers(200, 5, 5, ready=False, queued_ns=0, unpack_ns=0)
    found = workload(tmp_path, rows, config={"num_workers": 2}, samples=samples)
    assert found.compute_cores == pytest.approx(computing)


@pytest.mark.parametrize(("pause_ms", "stop_ms"), [(30, 30), (60_000, 2 * STOP_NS / MS)])
def test_a_long_pause_between_epochs_is_not_the_end_of_workers(
    tmp_path: Path, pause_ms: int, stop_ms: float
) -> None:
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


def test_the_length_of_an_epoch_that_has_not_ended(tmp_path: Path) -> None:
    rows = loop(50, 10, 5, fetch_ns=8 * MS)
    epochs = [{**epoch_row(rows), "how": -1, "batches": 0}]
    for config, batches in (({"dataset_len": 4000, "batch_size": 4}, 1000), (None, 50)):
        found = workload(tmp_path / str(batches), rows, epochs=epochs, config=config)
        assert found.epoch_batches == batches


def test_epochs_made_with_other_settings_do_not_count(tmp_path: Path) -> None:
    """While a loader is tuned, some epochs are those of a candidate: what the code's own take is
    not their mean."""
    lanes, start = [], T0
    for number, fetch_ms in enumerate((10.0, 1.0, 10.0, 1.0)):
        lanes.append(
            loop(
                80,
                fetch_ms + 0.1,
                1.0,
                epoch=number,
                start_ns=start,
                fetch_ns=round(fetch_ms * MS),
                fetch_cpu_ns=round(fetch_ms * MS),
                collate_ns=0,
                collate_cpu_ns=0,
                index_ns=0,
            )
        )
        start = lanes[-1][-1]["t_ns"] + 100 * MS
    rows = [row for lane in lanes for row in lane]
    builder = RunBuilder(tmp_path)
    builder.process().loader(
        rows, epochs=[epoch_row(each) for each in lanes], config={"num_workers": 0}
    )
    run = open_run(builder.path)
    loader = run.loaders[0]
    own, other = {"num_workers": 0, "batched": False}, {"num_workers": 0, "batched": True}
    switches = tuple(
        Switch(lane[0]["t_ns"] - 1, n, 0, (own, other)[n % 2]) for n, lane in enumerate(lanes)
    )
    tuned = replace(loader, tuning=Tuned(own, own, True, "", (), switches)).as_coded()
    found = workload_of(run, run.processes[0], tuned)
    assert found.measured_inner_ns == pytest.approx(11.1 * MS, rel=0.02)
    assert found.measured_batch_ns == pytest.approx(11.1 * MS, rel=0.1)
    whole = workload_of(run, run.processes[0], loader)
    assert whole.measured_batch_ns < 8 * MS


@pytest.mark.parametrize(("wait_ms", "enough"), [(1500.0, True), (15.0, False)])
def test_a_few_long_batches_are_enough_to_predict(
    tmp_path: Path, wait_ms: float, enough: bool
) -> None:
    rows = loop(8, wait_ms, 5, fetch_ns=round(wait_ms * MS), fetch_cpu_ns=MS)
    if not enough:
        with pytest.raises(TooLittle):
            workload(tmp_path, rows)
        return
    assert WhatIf(workload(tmp_path, rows)).predict(fetch=0.5).mid == pytest.approx(2.0, rel=0.1)
