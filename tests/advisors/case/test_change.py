"""A change is written once: its prediction, its code and the arguments it sets come from the same
words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.advice import SAME
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.case.code_text import Source
from loaderscope.advisors.schema.report_model import Range
from rule_cases import ANSWER, arguments, case_of
from rule_rows import main_loop


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return case_of(tmp_path, main_loop(100, fetch=3.0))


def asked_of(case: Case) -> Any:
    whatif: Any = case.whatif
    return whatif.asked


def test_an_argument_is_predicted_written_and_set(case: Case) -> None:
    change = case.change(num_workers=4, then="  # and so on\n")
    assert change.predicted == ANSWER
    assert asked_of(case) == [{"num_workers": 4}]
    assert change.asked == {"num_workers": 4}
    assert arguments(change.code)["num_workers"] == "4" and change.code.endswith("  # and so on\n")
    assert change.params == {"num_workers": 4}


def test_what_happens_to_a_stage_is_predicted_alone(case: Case) -> None:
    change = case.change(pin_memory=True, h2d=(0.2, 0.5), non_blocking=True)
    assert asked_of(case) == [{"pin_memory": True, "h2d": (0.2, 0.5), "non_blocking": True}]
    assert "h2d" not in change.code
    assert "non_blocking" not in change.code
    assert change.params == {"pin_memory": True}


def test_what_the_model_does_not_know_is_written_alone(case: Case) -> None:
    change = case.change(drop_last=True, collate_fn=Source("stacked"))
    assert asked_of(case) == [] and change.predicted == SAME and change.asked is None
    assert arguments(change.code)["collate_fn"] == "stacked" and change.params == {
        "drop_last": True
    }


def test_a_rule_may_know_better(case: Case) -> None:
    change = case.change(code="x = 1\n", fetch=0.5, predicted=Range(1.0, 3.0, 3.0))
    assert asked_of(case) == [] and (change.predicted.high, change.code) == (3.0, "x = 1\n")


def test_without_a_model_nothing_is_promised(case: Case) -> None:
    assert replace(case, whatif=None).change(num_workers=2).predicted == SAME


def test_what_would_not_help_is_called_by_its_arguments(case: Case) -> None:
    twin = case.change(prefetch_factor=8).would_not_help(
        "The queue stays empty.", {"waiting": "1 %"}
    )
    assert twin.rejected and twin.title == "prefetch_factor=8 would not help"
