"""What is said of a loader, its findings and its advice, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import loop
from loaderscope.advisors.schema.report_model import Finding, LoaderReport, Range
from loaderscope.reports.words.advice_words import effect_text, predicted_text
from loaderscope.reports.words.inside import finding_text, what_costs
from loaderscope.reports.words.sentences import nothing_to_change
from report_samples import advice, full_report, full_run, recorded, reported


def base(
    tmp_path: Path, wait_ms: float = 12, compute_ms: float = 4, batches: int = 200
) -> LoaderReport:
    """A loader that nothing was advised on."""
    rows = loop(batches, wait_ms=wait_ms, compute_ms=compute_ms, fetch_ns=9_000_000)
    loader = reported(recorded(tmp_path, rows, name="Points")).loaders[0]
    return replace(loader, capacities={}, limit=None)


def test_nothing_to_change(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"unmeasured": {"hot-function": "no stacks"}}
    computing = base(tmp_path / "a", wait_ms=0.1, compute_ms=20)
    assert "Nothing to gain from the loader" in (nothing_to_change(computing) or "")
    waiting = base(tmp_path / "b")
    assert nothing_to_change(waiting) is None
    assert "No change is certain" in (nothing_to_change(replace(waiting, **asked)) or "")
    short = base(tmp_path / "c", batches=3)
    assert nothing_to_change(replace(short, **asked)) is None


@pytest.mark.parametrize(
    ("low", "mid", "high", "shown"),
    [
        (1.5, 1.8, 2.1, "×1.8 (1.5–2.1)"),
        (1.04, 1.1, 1.17, "×1.10 (1.04–1.17)"),
        (0.15, 0.2, 0.3, "×0.20 (0.15–0.30)"),
        (0.2, 0.4, 0.9, "×0.40 (0.20–0.90)"),
        (6.1, 9.4, 14.2, "×9.4 (6.1–14)"),
        (18.0, 24.4, 31.0, "×24 (18–31)"),
        (0.7, 1.4, 1.9, "×1.4 (0.70–1.9)"),
        (2.0, 2.0, 2.0, "×2.00"),
    ],
)
def test_predicted_ranges(low: float, mid: float, high: float, shown: str) -> None:
    assert predicted_text(Range(low, mid, high)) == shown


def test_what_was_measured_goes_before_what_was_predicted() -> None:
    for measured, shown in {0.214: "×0.21", 1.74: "×1.74", 3.14: "×3.1", 24.4: "×24"}.items():
        assert effect_text(advice(measured=measured)) == f"measured {shown}"
    assert effect_text(advice(predicted=Range(1.0, 1.0, 1.0))) == ""


LINE = Finding(
    "fetch", "gc.collect()", "data.py:610", None, Range(0.98, 1.0, 1.0), 0.99, Range(400, 628, 900)
)
STAGE = Finding("collate", None, None, None, Range(1, 1, 1), 0.3, None)
CALL = replace(
    LINE, text="row = load(i)", call="json loads", share=Range(0.3, 0.4, 0.5), factor=Range(1, 1, 1)
)


def test_a_line_a_call_and_a_stage() -> None:
    assert finding_text(LINE) == "`gc.collect()` data.py:610, 100 % of fetch; without it ×628"
    assert finding_text(CALL) == "`row = load(i)` data.py:610 (json loads), 40 % of fetch"
    assert finding_text(STAGE) == "collating, 30 % of the wait"


def test_what_costs_leads_be_it_a_line_or_a_stage(tmp_path: Path) -> None:
    loader = full_report(full_run(tmp_path)).loaders[0]
    for findings in ((LINE, STAGE), (STAGE,)):
        said = f"What costs: {finding_text(findings[0])}."
        assert what_costs(replace(loader, findings=findings)) == said
    assert what_costs(replace(loader, findings=())) is None
