"""in-order: slow batches that block ready ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rule_cases import FakeWhatIf, advice, arguments, case_of, outcomes, rejection, workers_config
from rule_rows import worker_loop

NAME = "in-order"


def rows(slow_ms: float = 90.0, ready: int = 3, fast_ms: float = 9.0) -> list[dict[str, Any]]:
    found = worker_loop(
        200, wait_ms=1.0, compute_ms=10.0, fetch_ms=lambda n: slow_ms if n % 10 == 0 else fast_ms
    )
    for number in range(0, 200, 10):
        found[number]["ready"] = ready
    return found


def heavy_waits(found: list[dict[str, Any]], ms: int = 60) -> list[dict[str, Any]]:
    """The slow batches are what is waited for."""
    shift = 0
    for number, row in enumerate(found):
        row["t_ns"] += shift
        row["t_fetch_ns"] += shift
        if number % 10 == 0:
            row["wait_ns"] += ms * 10**6
            row["t_fetch_ns"] += ms * 10**6
            shift += ms * 10**6
    return found


def test_fires_where_ready_batches_are_blocked(tmp_path: Path) -> None:
    whatif = FakeWhatIf(1.4)
    found = advice(
        NAME, case_of(tmp_path, heavy_waits(rows()), whatif=whatif, config=workers_config(2))
    )
    assert found.params == {"in_order": False}
    assert arguments(found.code)["in_order"] == "False"
    assert whatif.asked == [{"in_order": False}]
    assert "order" in (found.caveat or "")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"ready": 0}, {}),
        ({"slow_ms": 15.0}, {}),
        ({}, {"config": workers_config(2, in_order=False)}),
        ({}, {"config": workers_config(1)}),
        ({}, {"process": {"torch": "2.5.1"}}),
        ({}, {"process": {"torch": None}}),
    ],
)
def test_silent_one_step_away(
    tmp_path: Path, change: dict[str, Any], facts: dict[str, Any]
) -> None:
    told = {"config": workers_config(2), **facts}
    case = case_of(tmp_path, heavy_waits(rows(**change)), whatif=FakeWhatIf(1.4), **told)
    assert outcomes(NAME, case) == []


def test_rejected_where_workers_are_always_busy(tmp_path: Path) -> None:
    case = case_of(
        tmp_path,
        heavy_waits(rows(slow_ms=190.0, fast_ms=22.0)),
        whatif=FakeWhatIf(1.0),
        config=workers_config(2),
    )
    rejected = rejection(NAME, case)
    assert rejected.title == "in_order=False would not help"
    assert rejected.predicted is not None and rejected.predicted.mid == 1.0
    assert rejected.why.startswith("Slow batches do block")
