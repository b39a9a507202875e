"""A change is written once: its prediction, its code and the arguments it sets come from the same
words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderscope.advisors.case.advice import SAME
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.case.code_text import Source
from loaderscope.advisors.schema.report_model import Range
from rule_cases import ANSWER, arguments, asked, case_of
from rule_rows import main_loop


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return case_of(tmp_path, main_loop(100, fetch=3.0))


@pytest.mark.parametrize(
    ("changes", "questions", "predicted", "params"),
    [
        ({"num_workers": 4}, [{"num_workers": 4}], ANSWER, {"num_workers": 4}),
        # What happens to a stage is predicted alone.
        (
            {"pin_memory": True, "h2d": (0.2, 0.5), "non_blocking": True},
            [{"pin_memory": True, "h2d": (0.2, 0.5), "non_blocking": True}],
            ANSWER,
            {"pin_memory": True},
        ),
        # What the model does not know is written alone.
        ({"drop_last": True, "collate_fn": Source("stacked")}, [], SAME, {"drop_last": True}),
    ],
)
def test_an_argument_is_predicted_written_and_set(case, changes, questions, predicted, params):
    change = case.change(**changes, then="  # and so on\n")
    assert change.predicted == predicted and asked(case) == questions
    assert change.asked == (questions[0] if questions else None)
    assert change.params == params and change.code.endswith("  # and so on\n")
    written = {name: str(value) for name, value in arguments(change.code).items()}
    given = {name: str(value) for name, value in params.items()}
    assert written.items() >= given.items() and not {"h2d", "non_blocking"} & set(written)
    assert ("collate_fn" in changes) is (written.get("collate_fn") == "stacked")


def test_a_rule_may_know_better(case: Case) -> None:
    change = case.change(code="x = 1\n", fetch=0.5, predicted=Range(1.0, 3.0, 3.0))
    assert asked(case) == [] and (change.predicted.high, change.code) == (3.0, "x = 1\n")
    # Without a model nothing is promised.
    assert replace(case, whatif=None).change(num_workers=2).predicted == SAME


def test_what_would_not_help_is_called_by_its_arguments(case: Case) -> None:
    change = case.change(prefetch_factor=8)
    twin = change.would_not_help("The queue stays empty.", {"waiting": "1 %"})
    assert twin.rejected and twin.title == "prefetch_factor=8 would not help"
