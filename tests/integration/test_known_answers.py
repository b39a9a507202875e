"""Loaders of which the answer is known: the quick part of benchmarks/known_answers.py."""

from __future__ import annotations

from typing import Any

import pytest

from judged_cases import LIMIT_S, ROUNDS, cases_are_right


def right(case: dict[str, Any]) -> bool:
    """The planted cause came first, or nothing of a healthy loader; and nothing forbidden."""
    assert not case.get("failed_rules"), case["failed_rules"]
    return "failed" not in case and case["ok"] and not case["forbidden_seen"]


@pytest.mark.quiet
@pytest.mark.timeout(ROUNDS * LIMIT_S)
def test_planted_causes_come_first_and_healthy_loaders_are_left_alone() -> None:
    cases_are_right("known_answers.py", "--no-measure", least=12, right=right)
