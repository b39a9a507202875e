"""The verdict and the headroom, and the means and shares that they rest on."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import MS, T0, epoch_row, loader_of, loop
from loaderscope.advisors.schema.report_model import Basis, Verdict
from loaderscope.advisors.stage_model.measured import low, mean, peak
from loaderscope.advisors.stage_model.shares import blocked_share
from loaderscope.advisors.stage_model.verdict import headroom, lost_time, share_with_range, verdict
from loaderscope.advisors.whatif.recorded import Recorded


def judge(tmp_path: Path, rows: list[dict[str, Any]], **facts: Any) -> tuple[Verdict, Basis]:
    loader = loader_of(tmp_path, rows, **facts)
    return verdict(loader, lost_time(loader))


WAITS = {17: "input-bound", 16: "balanced", 6: "balanced", 5: "compute-bound"}


@pytest.mark.parametrize(("wait", "expected"), WAITS.items())
def test_thresholds(tmp_path: Path, wait: float, expected: str) -> None:
    found, basis = judge(tmp_path, loop(200, wait_ms=wait, compute_ms=100 - wait))
    assert (found, basis.steady_batches) == (expected, 199)
    assert basis.stall_share == pytest.approx(wait / 100)


@pytest.mark.parametrize(("batches", "short"), [(0, True), (19, True), (20, False)])
def test_too_short_says_what_to_do(tmp_path: Path, batches: int, short: bool) -> None:
    found, basis = judge(tmp_path, loop(batches) if batches else [])
    told = (found == "too-short", "at least 20" in basis.sentence, basis.stall_share is None)
    assert told == (short,) * 3


@pytest.mark.parametrize(
    ("batches", "wait_ms", "short_ms", "expected"),
    [
        (6, 1500.0, 1500.0, "input-bound"),
        (3, 4000.0, 4000.0, "too-short"),  # not often enough
        (6, 150.0, 150.0, "too-short"),  # not long enough
        (8, 1500.0, 1.0, "too-short"),  # they differ
    ],
)
def test_few_long_batches_that_agree_are_enough(tmp_path, batches, wait_ms, short_ms, expected):
    rows = loop(batches, wait_ms=wait_ms, compute_ms=100.0)
    rows[batches // 2]["wait_ns"] = round(short_ms * MS)
    found, basis = judge(tmp_path, rows)
    assert (found, basis.confidence) == (expected, "low")


@pytest.mark.parametrize(("workers", "expected"), [(2, "input-bound"), (0, "too-short")])
def test_batches_of_workers_come_in_rounds(tmp_path: Path, workers: int, expected: str) -> None:
    rows = loop(13, wait_ms=0.1, compute_ms=100.0)
    for number, row in enumerate(rows):
        row["t_ns"] += 2500 * MS * (number // 2)
        row["wait_ns"] += 2500 * MS * (number % 2)
    found, basis = judge(tmp_path, rows, config={"num_workers": workers})
    assert (found, basis.confidence) == (expected, "low")


def epochs_of(number: int, *step: Any, **columns: Any) -> list[list[dict[str, Any]]]:
    return [loop(*step, epoch=n, start_ns=T0 + n * 10**11, **columns) for n in range(number)]


def test_the_first_batch_of_each_epoch_is_set_apart(tmp_path: Path) -> None:
    found, basis = judge(tmp_path, [*chain(*epochs_of(3, 40, 1, 99, first_wait_ms=300))])
    assert (found, basis.stall_share) == ("compute-bound", pytest.approx(0.01))
    assert basis.epoch_start_share == pytest.approx(600 / (3 * 4000 + 900 - 3), rel=0.01)
    starts = epochs_of(5, 20, 0.1, 10, first_wait_ms=500)  # repeated epoch starts alone
    found, basis = judge(tmp_path / "starts", [*chain(*starts)])
    assert found == "input-bound" and basis.sentence.startswith("Epoch starts cost ")


def test_epochs_of_one_batch_each_have_no_other(tmp_path: Path) -> None:
    each = epochs_of(40, 1, 90, 10, fetch_ns=80 * MS)
    loader = loader_of(tmp_path, [*chain(*each)], epochs=[epoch_row(rows) for rows in each])
    found, basis = verdict(loader, lost_time(loader))
    assert (found, basis.steady_batches, Recorded(loader).count) == ("input-bound", 40, 39)


def test_time_in_iter_counts_for_epoch_starts_and_headroom(tmp_path: Path) -> None:
    """Starting workers happens in iter(), before any wait."""
    each = epochs_of(4, 25, 0, 10)
    epochs = [epoch_row(rows, startup_ms=250) for rows in each]
    loader = loader_of(tmp_path, [*chain(*each)], epochs=epochs)
    lost = lost_time(loader)
    assert headroom(loader, lost) == pytest.approx(2.0)
    found, basis = verdict(loader, lost)
    assert (found, basis.epoch_start_share) == ("input-bound", pytest.approx(0.75 / 1.75))


def test_on_a_device_only_stall_is_lost(tmp_path: Path) -> None:
    loader = loader_of(tmp_path, loop(100, wait_ms=50, compute_ms=50, stall_ns=2 * MS))
    lost = lost_time(loader)
    found, basis = verdict(loader, lost)
    assert (found, basis.lost) == ("compute-bound", "stall") and "device" in basis.sentence
    assert headroom(loader, lost) == pytest.approx(100 / 98)


@pytest.mark.parametrize(("unread", "expected"), [(60, "compute-bound"), (400, "input-bound")])
def test_batches_that_the_device_has_yet_to_reach_do_not_count(tmp_path, unread, expected):
    # Unless there are more of them than can be waiting for it: then nobody times it any more.
    stall = lambda n, t, w: 0 if n < 500 - unread else -1  # noqa: E731
    assert judge(tmp_path, loop(500, wait_ms=9, compute_ms=1, stall_ns=stall))[0] == expected


def test_headroom(tmp_path: Path) -> None:
    stalls = loader_of(tmp_path / "stalls", loop(30, 1, 1, stall_ns=50 * MS))
    assert headroom(stalls, lost_time(stalls)) == pytest.approx(2)  # it never exceeds wait
    waits = loader_of(tmp_path / "waits", loop(30, 5, 0))
    assert headroom(waits, lost_time(waits)) is None  # nothing is left


def test_a_verdict_near_a_threshold_is_of_low_confidence(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = loop(400, wait_ms=10, compute_ms=88)
    t = T0
    for row in rows:
        row["t_ns"], row["wait_ns"] = t, int(rng.gamma(0.5, 20 * MS))
        t += row["wait_ns"] + 88 * MS
    assert judge(tmp_path, rows)[1].confidence == "low"
    assert judge(tmp_path / "clear", loop(400, wait_ms=50, compute_ms=50))[1].confidence == "high"
    assert judge(tmp_path / "few", loop(40, wait_ms=50, compute_ms=50))[1].confidence == "medium"


def test_the_range_covers_the_true_share() -> None:
    """Correlated steps (slow phases) must widen it: over many made-up runs, 95 % nominal."""
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(300):
        phases = np.repeat(rng.gamma(2, 1, 100), 10)  # ten batches a phase
        gone = phases * rng.gamma(4, 0.25, 1000)
        _, low, high = share_with_range(gone, gone + 8)
        covered += low <= 2 / 10 <= high
    assert 0.85 <= covered / 300 <= 1


def test_what_was_not_measured_counts_for_nothing() -> None:
    values = np.array([-1, 4, 0, -1, 2], dtype=np.int32)
    assert [each(values) for each in (mean, low, peak)] == [2.0, 0, 4]
    assert [each(values[values < 0]) for each in (mean, low, peak)] == [None] * 3
    assert mean(np.full(4, 2**31 - 1, dtype=np.int32)) == 2**31 - 1


@pytest.mark.parametrize(
    ("ready", "unpack", "share"),
    [([0, 2, 0], 0, 0.5), ([0, 2, -1], 0, 2 / 3), ([0, 1, 0], 20, 0.75), ([-1, -1, -1], 0, None)],
)
def test_blocked_share(ready: list[int], unpack: int, share: float | None) -> None:
    """Batches whose readiness is not known do not count; unpacking is no waiting for a batch."""
    unpacked = [unpack, min(unpack, 10), min(unpack, 10)]
    lists = {"wait_ns": [20, 40, 20], "ready": ready, "unpack_ns": unpacked, "pin_ns": [-1, -1, -1]}
    found = blocked_share({name: np.array(values) for name, values in lists.items()})
    assert found == (pytest.approx(share) if share is not None else None)
