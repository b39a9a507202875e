"""Stage statistics against numbers worked out by hand or by NumPy."""

from pathlib import Path
from typing import Any

import pytest

from builders import MS, epoch_row, loader_of, loop
from loaderscope.advisors.stage_model.stages import stages


def test_mean_percentiles_and_share(tmp_path: Path) -> None:
    columns = {"fetch_ns": lambda n, t, w: n * 1000, "collate_ns": 20 * MS}
    found = stages(loader_of(tmp_path, loop(101, wait_ms=2, compute_ms=6, **columns)), None)
    fetch = found["fetch"]
    assert (fetch.count, fetch.mean_us) == (101, 50)
    assert (fetch.p50_us, fetch.p95_us, fetch.p99_us) == (50, 95, 99)
    assert fetch.total_s == pytest.approx(101 * 50e-6)
    shares = [found[name].share for name in ("wait", "compute", "collate")]
    assert shares == pytest.approx([0.25, 0.75, 2.5])  # workers side by side may exceed the step
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
    copies = lambda n, t, w: (0 if n % 20 == 0 else 3) if n % 5 == 0 else -1  # noqa: E731
    copied = lambda n, t, w: 2 * MS if n % 5 == 0 and n % 20 else -1  # noqa: E731
    rows = loop(100, wait_ms=4, compute_ms=6, h2d_copies=copies, h2d_ns=copied)
    found = stages(loader_of(tmp_path, rows), "cuda:0")["h2d"]
    assert (found.count, found.mean_us) == (15, 2000)
    assert (found.share, found.total_s) == pytest.approx((0.75 * 0.2, 0.15))


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
