"""The quick parts of benchmarks, whose answers are known: what is wrong twice on a quiet machine is
wrong."""

import importlib.util
import json
import sys
from collections import Counter
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
CHANGED = {"jpeg": "PIL", "own-function": "json", "hf-rows": "datasets", "h5py-chunks": "h5py"}
CHANGED |= {"parquet-rows": "pyarrow", "tar-reopened": "json"}
QUICK = ("jpeg", "own-function")


def told(script: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The JSON that a script among the benchmarks prints."""
    done = python(str(BENCHMARKS / script), *arguments, timeout=LIMIT_S)
    assert done.returncode in codes, done.stderr
    return dict(json.loads(done.stdout))


def quiet(case: dict[str, Any]) -> bool:
    """Whether the machine had the CPU time it asked for; True where that cannot be known."""
    withheld = case["withheld_share"]
    return withheld is None or withheld < QUIET_BELOW


def right(case: dict[str, Any]) -> bool:
    """What was planted came first (cause, function, layout), or nothing of a healthy loader; and
    nothing forbidden."""
    assert not case.get("failed_rules"), case["failed_rules"]
    return "failed" not in case and bool(case.get("ok")) and not case.get("forbidden_seen")


def cases_are_right(script: str, *options: str, least: int) -> None:
    """Judges the quick cases, and the wrong ones again: wrong twice on a quiet machine is wrong."""
    found = told(script, "--quick", *PATIENCE, *options, codes=(0, 1))
    assert len(found["cases"]) + len(found["left_out"]) >= least
    cases = found["cases"]
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
        shares = {name: case["withheld_share"] for name, case in suspects.items()}
        pytest.skip(f"cannot be judged here, the hypervisor withheld the CPU: {shares}")


NO_STACKS = sys.platform != "linux" or find_py_spy() is None
BURSTS = pytest.mark.skipif(NO_STACKS, reason="stacks need Linux and py-spy")


@pytest.mark.quiet
@pytest.mark.timeout(ROUNDS * LIMIT_S)
@pytest.mark.parametrize(
    ("least", "script"),
    [
        (12, ("known_answers.py", "--no-measure")),
        pytest.param(4, ("inside.py",), marks=BURSTS),
    ],
)
def test_what_was_planted_is_named_and_healthy_loaders_are_left_alone(
    least: int, script: tuple[str, ...]
) -> None:
    cases_are_right(*script, least=least)


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in CHANGED]
)
def test_a_better_alternative_gives_the_same_samples(case: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(CHANGED[case]) is None:
        pytest.skip(f"needs {CHANGED[case]}")
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
