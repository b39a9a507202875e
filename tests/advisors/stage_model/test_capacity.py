"""What each stage could sustain, and which one is the narrowest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS, RunBuilder, loop
from loaderscope.advisors.schema.report_model import Capacity
from loaderscope.advisors.stage_model.capacity import capacities
from loaderscope.advisors.stage_model.stages import stages
from loaderscope.profiler.store.run.run_reader import open_run


def found(
    tmp_path: Path, cpus: float | None = 8.0, workers: int = 0, **columns: Any
) -> tuple[dict[str, Capacity], str | None]:
    wait, compute = columns.pop("wait_ms", 5), columns.pop("compute_ms", 5)
    run = RunBuilder(tmp_path)
    run.process().loader(loop(50, wait, compute, **columns), config={"num_workers": workers})
    process = open_run(run.path).processes[0]
    return capacities(process.loaders[0], stages(process.loaders[0], process.device), cpus)


def test_without_workers_one_batch_after_another(tmp_path: Path) -> None:
    making = {"fetch_ns": 8 * MS, "fetch_cpu_ns": 0, "collate_ns": 2 * MS, "collate_cpu_ns": 2 * MS}
    figures, limit = found(tmp_path, index_ns=MS, **making)
    assert figures["index"].batches_per_s == pytest.approx(1000)
    assert figures["fetch+collate"].batches_per_s == pytest.approx(100)
    assert "waiting (20 % of the time on a CPU)" in figures["fetch+collate"].how
    assert figures["compute"].batches_per_s == pytest.approx(200)
    assert limit == "fetch+collate"
    assert "workers" not in figures


def test_workers_that_wait_are_as_fast_as_they_are_many(tmp_path: Path) -> None:
    making = {"fetch_ns": 20 * MS, "fetch_cpu_ns": MS, "pack_ns": MS, "unpack_ns": MS // 2}
    figures, limit = found(tmp_path, cpus=2, workers=8, t_fetch_ns=1, **making)
    assert [figures[name].batches_per_s for name in ("workers", "pack", "unpack")] == (
        pytest.approx([400, 8000, 2000])
    )
    assert limit == "compute"


def test_workers_that_compute_are_as_fast_as_the_cores(tmp_path: Path) -> None:
    making = {"workers": 8, "fetch_ns": 40 * MS, "fetch_cpu_ns": 20 * MS, "t_fetch_ns": 1}
    figures, limit = found(tmp_path / "two", cpus=2, **making)
    assert figures["workers"].batches_per_s == pytest.approx(100)
    assert "limited by 2 CPUs" in figures["workers"].how
    assert limit == "workers"
    unknown, _ = found(tmp_path / "unknown", cpus=None, **making)
    assert unknown["workers"].batches_per_s == pytest.approx(200)


def test_waiting_the_device_does_not_feel_is_its_computing(tmp_path: Path) -> None:
    figures, _ = found(tmp_path, fetch_ns=MS, wait_ms=6, compute_ms=2, stall_ns=2 * MS)
    assert figures["compute"].batches_per_s == pytest.approx(1e3 / 6)


def test_what_was_not_measured_says_why(tmp_path: Path) -> None:
    figures, limit = found(tmp_path)
    assert figures["fetch+collate"].batches_per_s is None
    assert figures["h2d"] == Capacity(None, "no device")
    assert figures["pin"] == Capacity(None, "pin_memory is off")
    assert limit == "compute"
