"""Findings as sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from loaderscope.advisors.schema.report_model import Finding, Range
from loaderscope.reports.words.findings import finding_text, what_costs
from report_samples import full_report, full_run

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
    assert (
        what_costs(replace(loader, findings=(LINE, STAGE))) == f"What costs: {finding_text(LINE)}."
    )
    assert what_costs(replace(loader, findings=(STAGE,))) == f"What costs: {finding_text(STAGE)}."
    assert what_costs(replace(loader, findings=())) is None
