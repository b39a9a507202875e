"""What comes once an epoch, what waited for the interpreter or a core, what only warmed up: told
apart from work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import MS, T0, RunBuilder, epoch_row, loop
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import costs
from loaderscope.advisors.whatif.pipeline import made_in_main, typical, warmed
from loaderscope.advisors.whatif.predict import WhatIf
from loaderscope.advisors.whatif.workload import Workload, workload_of
from loaderscope.profiler.store.run.run_reader import open_run

Rows = list[dict[str, Any]]


def workload(
    folder: Path,
    rows: Rows,
    epochs: Rows,
    config: dict[str, Any] | None = None,
    samples: Rows | None = None,
) -> Workload:
    run = RunBuilder(folder)
    run.process(affinity=4).loader(rows, epochs=epochs, config=config, overhead={"hook_ns": 1800.0})
    if samples:
        run.system(machine=[{"t_ns": T0}], process=samples)
    opened = open_run(run.path)
    return workload_of(opened, opened.processes[0], opened.processes[0].loaders[0])


def permuted(epochs: int, batches: int = 800, draw_ms: float = 900.0) -> tuple[Rows, Rows]:
    """Drawing takes 0.1 ms a batch and `draw_ms` more with the first of each epoch; all else is 0.2
    ms."""
    rows: Rows = []
    told: Rows = []
    for epoch in range(epochs):
        start = rows[-1]["t_ns"] + 10 * MS if rows else T0
        own = loop(
            batches, 0.25, 0.05, epoch=epoch, start_ns=start, index_ns=MS // 10, fetch_ns=MS // 10
        )
        own[0]["index_ns"] += round(draw_ms * MS)
        own[0]["wait_ns"] += round(draw_ms * MS)
        for row in own[1:]:
            row["t_ns"] += round(draw_ms * MS)
        rows += own
        told.append(epoch_row(own))
    return rows, told


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_a_permutation_is_drawn_once_an_epoch_and_is_no_noise(tmp_path: Path, epochs: int) -> None:
    found = workload(tmp_path / "drawn", *permuted(epochs))
    assert found.draw_ns == pytest.approx(900 * MS, rel=0.01)

    model = WhatIf(found)
    without = model.predict(draw=0.0)
    # 800 batches take 240 ms beside it.
    assert without.mid == pytest.approx((900 + 240) / 240, rel=0.1)
    assert without.low > 0.5 * without.mid and without.high < 2 * without.mid
    assert model.predict(index=0.0).mid > without.mid
    assert model.predict(index=0.0, draw=1.0).mid < 1.2
    none = workload(tmp_path / "none", *permuted(2, draw_ms=0.0))
    assert none.draw_ns == 0 and WhatIf(none).predict(draw=0.1) == Range(1.0, 1.0, 1.0)


def in_worker(
    made_ms: float, cpu_ms: float, pack_ms: float, batches: int = 120
) -> tuple[Rows, Rows]:
    """One worker, always at work: each batch is packed while the next is made."""
    rows = loop(batches, made_ms - 0.1, 0.1)
    for number, row in enumerate(rows):
        begin = T0 - 50 * MS + round(number * made_ms * MS)
        row |= {
            "fetch_ns": round(made_ms * MS),
            "fetch_cpu_ns": round(cpu_ms * MS),
            "collate_ns": 0,
            "collate_cpu_ns": 0,
            "pack_ns": round(pack_ms * MS),
            "unpack_ns": 0,
            "queued_ns": 0,
            "t_fetch_ns": begin,
            "task": number,
            "worker": 0,
            "worker_pid": 5000,
            "index_ns": 0,
            "tensors": 1,
            "bytes": 1000,
            "pickled_bytes": 1000,
        }
    return rows, [epoch_row(rows)]


CONFIG = {"num_workers": 1, "persistent_workers": True}


def test_time_without_cpu_beside_packing_was_waiting_for_the_interpreter(tmp_path: Path) -> None:
    """50 ms there, of which 5 compute, and 45 while the batch before was pickled: 5 ms without
    workers."""
    found = workload(tmp_path / "beside", *in_worker(50.0, 5.0, 45.0), CONFIG)
    assert float(np.mean(found.turn_share)) == pytest.approx(1.0, abs=0.05)
    alone = workload(tmp_path / "waits", *in_worker(50.0, 5.0, 0.3), CONFIG)
    assert float(np.mean(alone.turn_share)) < 0.05

    away, waits = WhatIf(found).predict(num_workers=0), WhatIf(alone).predict(num_workers=0)

    assert 5 < away.mid < 13 and waits.mid < 1.3
    # Workers that stay still share the interpreter.
    assert WhatIf(found).predict(prefetch_factor=8).mid < 1.2


def test_what_warms_up_is_not_carried_by_a_mean(tmp_path: Path) -> None:
    rows, epochs = in_worker(10.0, 9.0, 0.3)
    kept = {"num_workers": 3, "persistent_workers": True}
    # The first batch of each worker that is kept is no steady one.
    assert workload(tmp_path / "kept", rows, epochs, kept).rows == len(rows) - 3
    for number, ms in ((1, 1000), (2, 1000), (3, 1000), (80, 300)):  # a slow file may come again
        rows[number]["fetch_ns"] = rows[number]["fetch_cpu_ns"] = ms * MS

    found = workload(tmp_path / "warm", rows, epochs, CONFIG)

    assert found.fetch_cpu_ns.max() == 300 * MS and np.sort(found.fetch_cpu_ns)[-2] <= 10 * MS


def test_what_main_waited_for_a_core_is_not_drawing(tmp_path: Path) -> None:
    rows, epochs = in_worker(10.0, 9.0, 0.3)
    for row in rows:
        row["index_ns"] = 4 * MS
    samples = [
        {
            "t_ns": T0 + s * 10**9,
            "pid": 4000,
            "role": 0,
            "cpu_user_ns": s * 10**9 // 2,
            "cpu_system_ns": 0,
            "run_delay_ns": s * 10**9 // 2,
        }
        for s in (0, 1)
    ]
    quiet = workload(tmp_path / "quiet", rows, epochs, CONFIG)
    crowded = workload(tmp_path / "crowded", rows, epochs, CONFIG, samples)
    assert quiet.index_ns.mean() == 4 * MS and crowded.index_ns.mean() == pytest.approx(2 * MS)


def test_what_recording_took_is_taken_off_whole_epochs(tmp_path: Path) -> None:
    """With workers too: it is recording's, and has nothing to do with packing."""
    rows, epochs = in_worker(10.0, 9.0, 0.3)
    noted = [{**row, "own_ns": MS // 20} for row in rows]

    plain, ours = (
        workload(tmp_path / name, lane, epochs, CONFIG)
        for name, lane in (("plain", rows), ("noted", noted))
    )

    assert plain.measured_batch_ns - ours.measured_batch_ns == pytest.approx(MS / 20)
    assert float(np.median(plain.compute_ns - ours.compute_ns)) == pytest.approx(MS / 20)


def test_where_workers_go_their_own_costs_go(tmp_path: Path) -> None:
    """Shared memory made while collating, cold caches, and a few batches far beyond the others."""
    rows, epochs = in_worker(10.0, 10.0, 0.3)
    for number, row in enumerate(rows):
        row |= {
            "collate_ns": MS // 10,
            "collate_cpu_ns": MS // 10,
            "tensors": 1,
            "pickled_bytes": 0,
        }
        if number % 10 == 5:
            row |= {"fetch_ns": 100 * MS, "fetch_cpu_ns": 100 * MS}
    found = workload(tmp_path, rows, epochs, CONFIG)
    plan, every = found.plan, np.arange(found.rows)

    kept, _ = made_in_main(found, plan, every)
    fetch, collate = made_in_main(found, replace(plan, num_workers=0), every)

    assert found.shares_in_collate
    assert float(kept.max()) == 100 * MS and float(fetch.max()) < 31 * MS
    assert float(np.median(fetch)) == pytest.approx(10 * MS - costs.COLD_FETCH_MOST_NS)
    assert float(np.median(collate)) == pytest.approx(MS / 10 - costs.SHARED_COLLATE_TENSOR_NS)
    # A new time that was asked for is meant as it is.
    asked = replace(plan, num_workers=0, factors={"fetch": 0.5})
    assert float(made_in_main(found, asked, every)[0].max()) == 100 * MS


def test_half_of_the_batches_are_no_outliers() -> None:
    few, many = np.ones(100), np.ones(100)
    few[::10], many[::3] = 50.0, 50.0
    assert float(typical(few).max()) == 3.0 and float(typical(many).max()) == 50.0


def test_what_comes_between_short_batches_finds_warm_caches() -> None:
    values = np.array([10.0, 100.0])
    assert warmed(values, 0.0, 0.5) is values
    assert warmed(values, 30.0, 0.4).tolist() == [4.0, 70.0]
