"""A benchmark's cases as a test: what is wrong twice on a quiet machine is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import loaderscope
from started import python

BENCHMARKS = Path(loaderscope.__file__).resolve().parent / "benchmarks"

# Of the CPU time asked for; on quiet hosts it was seldom above 0.02.
QUIET_BELOW = 0.05
ROUNDS = 4
PATIENCE = ("--patience", "20")
LIMIT_S = 1200

Cases = dict[str, dict[str, Any]]


def told(script: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The JSON that a script among the benchmarks prints."""
    done = python(str(BENCHMARKS / script), *arguments, timeout=LIMIT_S)
    assert done.returncode in codes, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def quiet(case: dict[str, Any]) -> bool:
    """Whether the machine had the CPU time it asked for; True where that cannot be known."""
    withheld = case["withheld_share"]
    return withheld is None or withheld < QUIET_BELOW


def cases_are_right(script, *options, least, right):
    """Judges the quick cases, and the wrong ones again: wrong twice on a quiet machine is wrong."""
    found = told(script, "--quick", *PATIENCE, *options, codes=(0, 1))
    assert len(found["cases"]) + len(found["left_out"]) >= least
    cases: Cases = found["cases"]
    suspects = {name: case for name, case in cases.items() if not right(case)}
    wrong_when_quiet = Counter(name for name, case in suspects.items() if quiet(case))
    for _ in range(ROUNDS - 1):
        again = [name for name in suspects if wrong_when_quiet[name] < 2]
        if not again:
            break
        only = (word for name in again for word in ("--only", name))
        found = told(script, *PATIENCE, *options, *only, codes=(0, 1))
        for name, case in found["cases"].items():
            suspects[name] = case
            if right(case):
                del suspects[name]
            elif quiet(case):
                wrong_when_quiet[name] += 1
    wrong = [name for name in suspects if wrong_when_quiet[name] >= 2]
    assert not wrong, json.dumps({name: suspects[name] for name in wrong}, indent=1)
    assert len(suspects) <= len(cases) / 2, json.dumps(suspects, indent=1)
    if suspects:
        shares = ", ".join(
            f"{name} {case['withheld_share'] or 0:.0%}" for name, case in suspects.items()
        )
        pytest.skip(f"cannot be judged here, the hypervisor withheld the CPU: {shares}")
