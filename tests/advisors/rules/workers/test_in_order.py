"""in-order: slow batches that block ready ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders import MS
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, arguments, asked, case_of, workers_config
from rule_rows import worker_loop
from silence import silent

NAME = "in-order"


def blocked(
    path: Path,
    slow_ms: float = 90.0,
    ready: int = 3,
    fast_ms: float = 9.0,
    factor: float = 1.4,
    **facts: Any,
) -> Case:
    """Every tenth batch is slow, and is what is waited for, 60 ms each."""
    rows = worker_loop(
        200, wait_ms=1.0, compute_ms=10.0, fetch_ms=lambda n: fast_ms if n % 10 else slow_ms
    )
    shift = 0
    for number, row in enumerate(rows):
        more = 0 if number % 10 else 60 * MS
        row["t_ns"] += shift
        row["t_fetch_ns"] += shift + more
        row["wait_ns"] += more
        row["ready"] = row["ready"] if number % 10 else ready
        shift += more
    return case_of(path, rows, whatif=FakeWhatIf(factor), **{"config": workers_config(2), **facts})


def test_fires_where_ready_batches_are_blocked(tmp_path: Path) -> None:
    case = blocked(tmp_path)
    found = advice(NAME, case)
    assert found.params == {"in_order": False}
    assert arguments(found.code)["in_order"] == "False"
    assert asked(case) == [{"in_order": False}]
    assert "order" in (found.caveat or "")


test_silent_one_step_away = silent(
    NAME,
    blocked,
    {"ready": 0},
    {"slow_ms": 15.0},
    {"config": workers_config(2, in_order=False)},
    {"config": workers_config(1)},
    {"process": {"torch": "2.5.1"}},
    {"process": {"torch": None}},
)
