"""Where a finding goes, and what it may promise: nothing of training that computes all the time, but for its copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.engine import place
from loaderscope.advisors.case.case import Advice, Case
from loaderscope.advisors.schema.report_model import Range, Recommendation
from rule_cases import case_of
from rule_rows import rows_of


@pytest.fixture
def found_case(tmp_path: Path) -> Case:
    rows, epochs = rows_of(wait_ms=0.1, compute_ms=5.0)
    return case_of(tmp_path, rows, epochs=epochs)


def placed(case: Case, copies: float, verdict: str, headroom: float | None) -> Recommendation | None:
    case = replace(case, report=replace(case.report, verdict=verdict, headroom=headroom))  # type: ignore[arg-type]
    advice = Advice("title", "why", {}, Range(1.2, 1.5, 3.0), "x = 1\n", beside_loading=copies)
    recommended: list[Recommendation] = []
    place(advice.recommendation("h2d-copies", "speed"), advice, case, recommended, [])
    return recommended[0] if recommended else None


def test_training_that_waits_for_its_copies_is_told(found_case: Case) -> None:
    assert placed(found_case, 0.0, "compute-bound", 1.01) is None
    found = placed(found_case, 0.4, "compute-bound", 1.0)
    assert found is not None
    assert (found.predicted.mid, found.predicted.high) == (1.5, pytest.approx(1 / 0.6))


def test_free_copies_come_on_top_of_free_loading(found_case: Case) -> None:
    loading, both = (placed(found_case, copies, "input-bound", 1.25) for copies in (0.0, 0.3))
    assert loading is not None and both is not None
    assert (loading.predicted.high, both.predicted.high) == (1.25, pytest.approx(2.0))
    unknown = placed(found_case, 0.3, "input-bound", None)
    assert unknown is not None and unknown.predicted.high == 3.0
