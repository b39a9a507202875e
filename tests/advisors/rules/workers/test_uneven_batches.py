"""in-order: slow batches that block ready ones. prefetch-factor: raised for unevenness, rejected
where workers are always busy."""

from pathlib import Path
from typing import Any

from builders import MS
from loaderscope.advisors.case.case import Case
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    asked,
    case_of,
    outcomes,
    rejection,
    shown,
    workers_config,
)
from rule_rows import worker_loop
from silence import silent

IN_ORDER = "in-order"


def blocked(path: Path, slow_ms: float = 90.0, ready: int = 3, **facts: Any) -> Case:
    """Every tenth batch is slow, and is what is waited for, 60 ms each."""
    rows = worker_loop(200, 1.0, 10.0, fetch_ms=lambda n: 9.0 if n % 10 else slow_ms)
    shift = 0
    for number, row in enumerate(rows):
        more = 0 if number % 10 else 60 * MS
        row["t_ns"] += shift
        row["t_fetch_ns"] += shift + more
        row["wait_ns"] += more
        row["ready"] = row["ready"] if number % 10 else ready
        shift += more
    return case_of(path, rows, **{"config": workers_config(2), **facts})


def test_fires_where_ready_batches_are_blocked(tmp_path: Path) -> None:
    case = blocked(tmp_path)
    found = advice(IN_ORDER, case)
    assert found.params == {"in_order": False} and "order" in (found.caveat or "")
    assert arguments(found.code)["in_order"] == "False" and asked(case) == [{"in_order": False}]


test_in_order_is_silent = silent(
    IN_ORDER,
    blocked,
    {"ready": 0},
    {"slow_ms": 15.0},
    {"config": workers_config(2, in_order=False)},
    {"config": workers_config(1)},
    {"process": {"torch": "2.5.1"}},
    {"process": {"torch": None}},
)


PREFETCH = "prefetch-factor"


def test_prefetching_is_raised_for_uneven_fetching_with_idle_room(tmp_path: Path) -> None:
    rows = worker_loop(200, 3.0, 10.0, fetch_ms=lambda n: 6.0 if n % 10 else 60.0)
    whatif = FakeWhatIf(lambda prefetch_factor: {4: 1.1, 8: 1.3}.get(prefetch_factor, 1.31))
    found = advice(PREFETCH, case_of(tmp_path, rows, whatif=whatif, config=workers_config(2)))
    assert found.params == {"prefetch_factor": 8} and shown(found, "fetch, p95") == ("60.0 ms",)
    assert arguments(found.code)["prefetch_factor"] == "8"


def test_prefetching_is_silent_for_even_fetching(tmp_path: Path) -> None:
    rows = worker_loop(200, 3.0, 10.0, fetch_ms=11.0)
    case = case_of(tmp_path, rows, whatif=FakeWhatIf(1.5), config=workers_config(2))
    assert outcomes(PREFETCH, case) == asked(case) == []


def test_prefetching_is_rejected_where_workers_are_always_busy(tmp_path: Path) -> None:
    rows = worker_loop(200, 8.0, 4.0, fetch_ms=lambda n: 13.0 if n % 10 else 120.0, bytes=10**6)
    case = case_of(tmp_path, rows, whatif=FakeWhatIf(1.0), config=workers_config(2))
    rejected = rejection(PREFETCH, case)
    assert rejected.title == "prefetch_factor=4 would not help" and "4.00 MB more" in rejected.why
    assert rejected.predicted.mid == 1.0
