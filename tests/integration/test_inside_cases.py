"""The planted functions and layouts: the quick part of benchmarks/inside.py, and its cases."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from judged_cases import LIMIT_S, ROUNDS, cases_are_right, told

# Cases whose alternative changes the code, not only where results lie.
CHANGED = ("jpeg", "hf-rows", "h5py-chunks", "own-function", "parquet-rows", "tar-reopened")
NEEDED = {
    "jpeg": ("PIL",),
    "hf-rows": ("datasets",),
    "h5py-chunks": ("h5py",),
    "parquet-rows": ("pyarrow",),
}


def named(case: dict[str, Any]) -> bool:
    """The planted function or layout was named."""
    assert not case.get("failed_rules"), case["failed_rules"]
    return bool(case.get("ok"))


@pytest.mark.quiet
@pytest.mark.timeout(ROUNDS * LIMIT_S)
@pytest.mark.skipif(sys.platform != "linux", reason="bursts of stack samples are taken on Linux")
@pytest.mark.skipif(
    shutil.which("py-spy") is None and not Path(sys.executable).with_name("py-spy").exists(),
    reason="py-spy is not installed",
)
def test_planted_functions_and_layouts_are_named() -> None:
    cases_are_right("inside.py", least=4, right=named)


@pytest.mark.parametrize(
    "case",
    [
        name if name in ("jpeg", "own-function") else pytest.param(name, marks=pytest.mark.slow)
        for name in CHANGED
    ],
)
def test_a_better_alternative_gives_the_same_samples(case: str, tmp_path: Path) -> None:
    for module in NEEDED.get(case, ()):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    found = told("inside_side.py", "check", case, str(tmp_path))
    assert found["equal"], found
