"""prefetch-factor: raised for unevenness, lowered for memory, rejected where workers are always
busy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rule_cases import FakeWhatIf, advice, arguments, case_of, outcomes, rejection, workers_config
from rule_rows import worker_loop

NAME = "prefetch-factor"


def uneven(number: int) -> float:
    return 60.0 if number % 10 == 0 else 6.0


def test_raised_for_uneven_fetching_with_idle_room(tmp_path: Path) -> None:
    rows = worker_loop(200, wait_ms=3.0, compute_ms=10.0, fetch_ms=uneven)
    whatif = FakeWhatIf(lambda prefetch_factor: {4: 1.1, 8: 1.3}.get(prefetch_factor, 1.31))
    found = advice(NAME, case_of(tmp_path, rows, whatif=whatif, config=workers_config(2)))
    assert found.params == {"prefetch_factor": 8}
    assert arguments(found.code)["prefetch_factor"] == "8"
    assert str(found.evidence["fetch, p95"]) == "60.0 ms"


def test_silent_for_even_fetching(tmp_path: Path) -> None:
    rows = worker_loop(200, wait_ms=3.0, compute_ms=10.0, fetch_ms=11.0)
    whatif = FakeWhatIf(1.5)
    assert outcomes(NAME, case_of(tmp_path, rows, whatif=whatif, config=workers_config(2))) == []
    assert whatif.asked == []


def test_rejected_where_workers_are_always_busy(tmp_path: Path) -> None:
    times: Any = {"wait_ms": 8.0, "compute_ms": 4.0, "bytes": 10**6}
    rows = worker_loop(200, fetch_ms=lambda n: 13.0 if n % 10 else 120.0, **times)
    case = case_of(tmp_path, rows, whatif=FakeWhatIf(1.0), config=workers_config(2))
    rejected = rejection(NAME, case)
    assert rejected.title == "prefetch_factor=4 would not help"
    assert rejected.predicted is not None and rejected.predicted.mid == 1.0
    assert "4.00 MB more" in rejected.why
