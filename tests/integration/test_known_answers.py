"""The advice on loaders of which the answer is known: the quick part of benchmarks/known_answers.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loaderscope

BENCHMARK = Path(loaderscope.__file__).resolve().parent / "benchmarks" / "known_answers.py"


def judged(*options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--no-measure", *options],
        capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def wrong(found: dict[str, Any]) -> dict[str, Any]:
    """The cases that are not as they should be, and what was found there."""
    told = ("failed", "verdict", "stall_share", "recorded", "recommended", "rejected", "failed_rules", "first")
    return {
        name: {key: case[key] for key in told if key in case}
        for name, case in found["cases"].items()
        if "failed" in case or not case["ok"] or case["forbidden_seen"] or case["failed_rules"]
    }


@pytest.mark.timeout(3200)
def test_planted_causes_come_first_and_healthy_loaders_are_left_alone() -> None:
    found = judged("--quick")
    assert len(found["cases"]) + len(found["left_out"]) >= 12
    suspects = wrong(found)
    if suspects:  # a busy machine can starve any loop: what is wrong twice is wrong
        again = judged(*(option for name in suspects for option in ("--only", name)))
        suspects = wrong(again)
    assert not suspects, json.dumps(suspects, indent=1)
