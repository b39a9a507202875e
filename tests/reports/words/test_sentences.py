"""What is said of a loader, its findings and its advice, in words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import loop
from loaderscope.advisors.schema.report_model import Finding, LoaderReport, Range
from loaderscope.reports.words.advice_words import effect_text, predicted_text
from loaderscope.reports.words.inside import what_costs
from loaderscope.reports.words.sentences import nothing_to_change
from loaderscope.reports.words.units import bar, duration, factor, percent, rate
from report_samples import advice, recorded, reported


def base(tmp_path: Path, wait_ms: float = 12, batches: int = 200) -> LoaderReport:
    """A loader that nothing was advised on."""
    return reported(recorded(tmp_path, loop(batches, wait_ms, 4, fetch_ns=9_000_000))).loaders[0]


def test_nothing_to_change(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"unmeasured": {"hot-function": "no stacks"}}
    computing = base(tmp_path / "a", wait_ms=0.02)
    assert "Nothing to gain from the loader" in (nothing_to_change(computing) or "")
    waiting = base(tmp_path / "b")
    assert nothing_to_change(waiting) is None
    assert "No change is certain" in (nothing_to_change(replace(waiting, **asked)) or "")
    short = base(tmp_path / "c", batches=3)
    assert nothing_to_change(replace(short, **asked)) is None


PREDICTED = {
    Range(1.5, 1.8, 2.1): "×1.8 (1.5–2.1)",
    Range(1.04, 1.1, 1.17): "×1.10 (1.04–1.17)",
    Range(0.2, 0.4, 0.9): "×0.40 (0.20–0.90)",
    Range(6.1, 9.4, 14.2): "×9.4 (6.1–14)",
    Range(18.0, 24.4, 31.0): "×24 (18–31)",
    Range(0.7, 1.4, 1.9): "×1.4 (0.70–1.9)",
    Range(2.0, 2.0, 2.0): "×2.00",
}


def test_what_was_measured_goes_before_what_was_predicted() -> None:
    assert {each: predicted_text(each) for each in PREDICTED} == PREDICTED
    for measured, shown in {0.214: "×0.21", 1.74: "×1.74", 24.4: "×24"}.items():
        assert effect_text(advice(measured=measured)) == f"measured {shown}"
    assert effect_text(advice(predicted=Range(1.0, 1.0, 1.0))) == ""


FREE = Range(400, 628, 900)
LINE = Finding("fetch", "gc.collect()", "data.py:610", None, Range(0.98, 1.0, 1.0), 0.99, FREE)
STAGE = Finding("collate", None, None, None, Range(1, 1, 1), 0.3, None)
PART, NONE = Range(0.3, 0.4, 0.5), Range(1, 1, 1)
CALL = replace(LINE, text="row = load(i)", call="json loads", share=PART, factor=NONE)
LEADS = {
    LINE: "`gc.collect()` data.py:610, 100 % of fetch; without it ×628",
    CALL: "`row = load(i)` data.py:610 (json loads), 40 % of fetch",
    STAGE: "collating, 30 % of the wait",
}


def test_what_costs_leads_be_it_a_line_a_call_or_a_stage(tmp_path: Path) -> None:
    loader = base(tmp_path)
    for first, said in LEADS.items():
        assert what_costs(replace(loader, findings=(first, STAGE))) == f"What costs: {said}."
    assert what_costs(replace(loader, findings=())) is None


def test_what_is_not_known_is_a_dash() -> None:
    """How numbers read: tests/advisors/schema/test_evidence.py."""
    assert [shown(None) for shown in (duration, percent, rate, factor)] == ["–"] * 4
    told = [duration(0.0999), percent(0.49), rate(123.8), factor(29.4)]
    assert told == ["99.9 ms", "49 %", "124", "×29"]


NARROW = {None: "    ", 0.0: "    ", 1e-9: "▏   ", 1.0: "████", 7.0: "████", 0.3: "█▎  "}


def test_bar() -> None:
    assert {share: bar(share, 4) for share in NARROW} == NARROW
    assert (bar(0.5, 8), bar(0.3, 0), bar(0.3, -2)) == ("████    ", "", "")
