"""The planted functions and layouts: the quick part of benchmarks/inside.py, and its cases themselves."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loaderscope

BENCHMARKS = Path(loaderscope.__file__).resolve().parent / "benchmarks"

# Cases of which the two loops are compared here: an alternative that changes the code, not only where results lie.
CHANGED = ("jpeg", "hf-rows", "h5py-chunks", "own-function", "parquet-rows", "tar-reopened")
NEEDED = {"jpeg": ("PIL",), "hf-rows": ("datasets",), "h5py-chunks": ("h5py",), "parquet-rows": ("pyarrow",)}


def told(script: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode in codes, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.timeout(3200)
@pytest.mark.skipif(sys.platform != "linux", reason="bursts of stack samples are taken on Linux")
@pytest.mark.skipif(
    shutil.which("py-spy") is None and not Path(sys.executable).with_name("py-spy").exists(),
    reason="py-spy is not installed",
)
def test_planted_functions_and_layouts_are_named() -> None:
    found = told("inside.py", "--quick", codes=(0, 1))
    assert len(found["cases"]) + len(found["left_out"]) >= 4
    wrong = found["summary"]["not_named"]
    if wrong:  # a busy machine can starve any loop: what is wrong twice is wrong
        found = told("inside.py", *(option for name in wrong for option in ("--only", name)), codes=(0, 1))
        wrong = found["summary"]["not_named"]
    assert not wrong


@pytest.mark.parametrize("case", CHANGED)
def test_a_better_alternative_gives_the_same_samples(case: str, tmp_path: Path) -> None:
    for module in NEEDED.get(case, ()):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    found = told("inside_side.py", "check", case, str(tmp_path))
    assert found["equal"], found
