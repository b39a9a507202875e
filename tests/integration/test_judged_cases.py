"""The quick parts of benchmarks, whose answers are known: what is wrong twice on a quiet machine is
wrong."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loaderscope
import standin_device as standin
from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy
from started import python

BENCHMARKS = Path(loaderscope.__file__).resolve().parent / "benchmarks"

# Of the CPU time asked for; on quiet hosts it was seldom above 0.02.
QUIET_BELOW = 0.05
ROUNDS = 4
PATIENCE = ("--patience", "20")
LIMIT_S = 1200

# Cases whose alternative changes the code, not only where results lie; what they need.
CHANGED = {
    "jpeg": ("PIL",),
    "own-function": (),
    "hf-rows": ("datasets",),
    "h5py-chunks": ("h5py",),
    "parquet-rows": ("pyarrow",),
    "tar-reopened": (),
}

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


def right(case: dict[str, Any]) -> bool:
    """The planted cause came first, or nothing of a healthy loader; and nothing forbidden."""
    assert not case.get("failed_rules"), case["failed_rules"]
    return "failed" not in case and case["ok"] and not case["forbidden_seen"]


def named(case: dict[str, Any]) -> bool:
    """The planted function or layout was named."""
    assert not case.get("failed_rules"), case["failed_rules"]
    return bool(case.get("ok"))


BURSTS = (
    pytest.mark.skipif(sys.platform != "linux", reason="stacks are taken on Linux"),
    pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed"),
)


@pytest.mark.quiet
@pytest.mark.timeout(ROUNDS * LIMIT_S)
@pytest.mark.parametrize(
    ("script", "options", "least", "is_right"),
    [
        ("known_answers.py", ("--no-measure",), 12, right),
        pytest.param("inside.py", (), 4, named, marks=BURSTS),
    ],
)
def test_what_was_planted_is_named_and_healthy_loaders_are_left_alone(
    script: str, options: tuple[str, ...], least: int, is_right: Callable[[dict[str, Any]], bool]
) -> None:
    cases_are_right(script, *options, least=least, right=is_right)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(name, marks=[] if name in ("jpeg", "own-function") else pytest.mark.slow)
        for name in CHANGED
    ],
)
def test_a_better_alternative_gives_the_same_samples(case: str, tmp_path: Path) -> None:
    for module in CHANGED[case]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    found = told("inside_side.py", "check", case, str(tmp_path))
    assert found["equal"], found


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.skipif(standin.missing() is not None, reason="no stand-in with this torch")
def test_device_figures_and_advice_on_the_stand_in() -> None:
    found = told("device.py", "--quick", "--patience", "0", codes=(0, 1))
    summary, device = found["summary"], found["summary"]["device"]
    assert summary["planted"] >= 7 and summary["healthy"] >= 3 and not summary["failed"]
    wrong = summary["false_alarms"] or summary["forbidden"]
    assert summary["first_right_share"] == 1 and not wrong, summary
    assert device["synchronised_added"] == 0 and device["reached"]["verdicts"]
    assert set(device["errors"]) == {"h2d_ns", "stall_ns", "compute_device_ns"}
    assert None not in device["errors"].values()
