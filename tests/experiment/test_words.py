"""What a trial of a change found, as one line."""

from __future__ import annotations

from typing import Any

import pytest

from loaderscope.experiment.result import Difference, Range, TryResult
from loaderscope.experiment.words import tried_line, tried_lines

FASTER, NONE, SLOWER = Range(2.6, 2.9, 3.1), Range(0.97, 1.0, 1.04), Range(0.6, 0.7, 0.8)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"same_batches": True, "compared": 64, "factor": FASTER, "memory_bytes": 120_000_000},
            "same batches (first 64), ×2.9 (2.6–3.1), memory +120 MB",
        ),
        (
            {"same_batches": True, "compared": 20, "ended": True, "factor": NONE},
            "same batches (all 20), not certainly faster or slower: ×1.00 (0.97–1.04)",
        ),
        (
            {"same_batches": True, "compared": 64, "random": True, "memory_bytes": -5_000_000},
            "same distributions in batches (first 64), speed not measured, memory −5.00 MB",
        ),
        (
            {
                "same_batches": False,
                "compared": 64,
                "factor": SLOWER,
                "first_difference": Difference(1200, "other values in [0]"),
            },
            "different from batch 1,200 on: other values in [0], ×0.70 (0.60–0.80)",
        ),
        (
            {
                "same_batches": False,
                "compared": 64,
                "random": True,
                "first_difference": Difference(None, "the distribution of [0]"),
            },
            "other batches (first 64): the distribution of [0], speed not measured",
        ),
        (
            {"compared": 3, "factor": NONE},
            "batches not compared, not certainly faster or slower: ×1.00 (0.97–1.04)",
        ),
        ({"error": "the script as it is\nended"}, "not tried: the script as it is ended"),
    ],
)
def test_one_line(facts: dict[str, Any], said: str) -> None:
    assert tried_line(TryResult(**facts)) == said


def test_notes_follow_without_control_characters() -> None:
    first, second = tried_lines(TryResult(error="x", notes=("one\x1b[31m two",)))
    assert first == "not tried: x" and second.startswith("  one") and "\x1b" not in second
