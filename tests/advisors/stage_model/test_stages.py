"""Stage statistics against numbers worked out by hand or by NumPy, and what stages could sustain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS, epoch_row, loader_of, loop, opened
from loaderscope.advisors.schema.report_model import Capacity
from loaderscope.advisors.stage_model.capacity import capacities
from loaderscope.advisors.stage_model.stages import stages


def test_mean_percentiles_and_share(tmp_path: Path) -> None:
    columns = {"fetch_ns": lambda n, t, w: n * 1000, "collate_ns": 20 * MS}
    found = stages(loader_of(tmp_path, loop(101, wait_ms=2, compute_ms=6, **columns)), None)
    fetch = found["fetch"]
    assert (fetch.count, fetch.mean_us) == (101, 50)
    assert (fetch.p50_us, fetch.p95_us, fetch.p99_us) == (50, 95, 99)
    assert fetch.total_s == pytest.approx(101 * 50e-6)
    assert found["wait"].share == pytest.approx(0.25)
    assert found["compute"].share == pytest.approx(0.75)
    assert found["collate"].share == pytest.approx(2.5)  # workers side by side may exceed the step
    nothing = stages(loader_of(tmp_path / "none"), None)
    assert all(each.count == 0 and each.reason for each in nothing.values())


def test_cpu_time_is_related_to_the_batches_it_was_measured_on(tmp_path: Path) -> None:
    """Detail is taken of the slow batches first, whose mean is not that of all."""
    wall, cpu = [10 * MS] * 10 + [MS] * 90, [5 * MS] * 10 + [None] * 90
    made = {"fetch_ns": lambda n, t, w: wall[n], "fetch_cpu_ns": lambda n, t, w: cpu[n]}
    rows = loop(100, wait_ms=1, compute_ms=1, **made)
    found = stages(loader_of(tmp_path, rows), None)
    assert found["fetch_cpu"].count == 10
    assert found["fetch_cpu"].share == pytest.approx((found["fetch"].share or 0) / 2)


def test_copies_looked_at_stand_for_all_batches(tmp_path: Path) -> None:
    # Of one batch in five, of which one in four had nothing to copy: 2 ms of 10 in the others.
    rows = loop(
        100,
        wait_ms=4,
        compute_ms=6,
        h2d_copies=lambda n, t, w: (0 if n % 20 == 0 else 3) if n % 5 == 0 else -1,
        h2d_ns=lambda n, t, w: 2 * MS if n % 5 == 0 and n % 20 else -1,
    )
    found = stages(loader_of(tmp_path, rows), "cuda:0")["h2d"]
    assert (found.count, found.mean_us) == (15, 2000)
    assert found.share == pytest.approx(0.75 * 0.2)
    assert found.total_s == pytest.approx(0.15)


def test_startup_is_an_epochs_not_a_batchs(tmp_path: Path) -> None:
    one, two = loop(20, epoch=0), loop(20, epoch=1, start_ns=10**13)
    epochs = [epoch_row(one, startup_ms=40), epoch_row(two, startup_ms=20)]
    found = stages(loader_of(tmp_path, one + two, epochs=epochs), None)["startup"]
    assert (found.count, found.mean_us) == (2, 30_000)
    assert found.share == pytest.approx(60 / 400)


OF_DATA_SET = "batch_size=None: the data set makes the batches"
OF_ITERABLE = "not a DataLoader: only waiting and computing are seen"


@pytest.mark.parametrize(
    ("name", "facts", "device", "reason"),
    [
        ("h2d", {}, None, "no device"),
        ("h2d", {}, "NVIDIA H200", "not measured"),
        ("h2d", {"reasons": {"h2d": "CUDA events failed"}}, "NVIDIA H200", "CUDA events failed"),
        ("pack", {}, None, "no workers"),
        ("pin", {}, None, "pin_memory is off"),
        ("pin", {"config": {"pin_memory": True}}, None, "no device to pin for"),
        ("pin", {"config": {"pin_memory": True}}, "NVIDIA H200", "not measured"),
        ("collate", {"config": {"batch_size": None}}, None, OF_DATA_SET),
        ("fetch", {"kind": "iterable"}, None, OF_ITERABLE),
        ("stall", {}, None, "no device: equals wait"),
    ],
)
def test_reasons(tmp_path: Path, name: str, facts: Any, device: str | None, reason: str) -> None:
    found = stages(loader_of(tmp_path, loop(5), **facts), device)[name]
    assert found.reason == reason
    assert (found.count == 0) == (found.mean_us is None) == (name != "stall")


def found(
    tmp_path: Path, cpus: float | None = 8.0, workers: int = 0, **columns: Any
) -> tuple[dict[str, Capacity], str | None]:
    wait, compute = columns.pop("wait_ms", 5), columns.pop("compute_ms", 5)
    rows = loop(50, wait, compute, **columns)
    (loader,) = opened(tmp_path, rows, config={"num_workers": workers}).loaders
    return capacities(loader, stages(loader, None), cpus)


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
