"""benchmarks/casebook.py: what counts as right, and how scripts are compared."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import loaderscope

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    dataset = TensorDataset(torch.arange(32.0) + {first})
    loader = DataLoader(dataset, batch_size=4)
    while True:
        for batch in loader:
            pass
"""
FACTS = {"lines": ["slow.py:3"], "calls": ["collate"], "rules": ["sampler"], "same_batches": True}
FACTS |= {"healthy": False, "advice": "every sample|open"}


@pytest.fixture(scope="module")
def casebook() -> Iterator[ModuleType]:
    """By its path: a clone may have the same name."""
    folder = Path(loaderscope.__file__).resolve().parent / "benchmarks"
    spec = importlib.util.spec_from_file_location("casebook_runner", folder / "casebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))


def script(folder: Path, name: str, first: int = 0) -> Path:
    path = folder / name
    path.write_text(SCRIPT.format(first=first), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("place", "stage", "call", "right"),
    [
        ("slow.py:3", "fetch", None, True),
        ("slow.py:4", "fetch", "read", False),
        (None, "collate", "stack", True),
    ],
)
def test_the_leading_finding_is_right_by_its_line_or_call(casebook, place, stage, call, right):
    lead = {"place": place, "stage": stage, "text": "x = f()", "call": call}
    other = {"place": "slow.py:3", "stage": "fetch", "text": None, "call": None}
    assert casebook.finding_right(FACTS, {"findings": [lead, other]}) is right
    assert not casebook.finding_right(FACTS, {"findings": []})


@pytest.mark.parametrize(
    ("rule", "title", "right"),
    [
        ("sampler", "Draw the indices at once", True),
        ("hot-function", "Do once what is the same for every sample: open(path)", True),
        ("hot-function", "Make each sample once, and store it: open(path)", False),
    ],
)
def test_the_first_step_is_right_by_its_rule_or_title(casebook, rule, title, right):
    result = {"plan": [{"rule": rule, "title": title}, {"rule": "sampler", "title": "…"}]}
    assert casebook.advice_right(FACTS, result) is right
    assert not casebook.advice_right({**FACTS, "healthy": True}, result)
    assert casebook.advice_right({**FACTS, "healthy": True}, {"plan": []})


def test_scripts_are_the_same_if_their_batches_are(casebook: ModuleType, tmp_path: Path) -> None:
    slow, fast, other = (
        script(tmp_path, name, first)
        for name, first in (("slow.py", 0), ("fast.py", 0), ("other.py", 1))
    )
    found = [casebook.contents(path, tmp_path) for path in (slow, fast, other)]
    assert found[0] == found[1] != found[2]
    pasted = "loader = DataLoader(dataset, batch_size=8)"
    assert casebook.contents(slow, tmp_path, pasted) != found[0]


def test_scripts_run_in_turns_with_what_is_pasted(casebook: ModuleType, tmp_path: Path) -> None:
    slow = script(tmp_path, "slow.py")
    legs = {
        "slow": (slow, ""),
        "advised": (slow, "loader = DataLoader(dataset, batch_size=8)"),
        "broken": (slow, "loader = no_such_name"),
    }
    found = casebook.in_turns(legs, tmp_path)
    assert found["samples_per_s"].keys() == {"slow", "advised"}
    assert min(found["samples_per_s"].values()) > 0
    assert "no_such_name" in found["failed"]["broken"]


def test_code_is_pasted_once(casebook: ModuleType, tmp_path: Path) -> None:
    """The script's own name is bound to the new loader from its second epoch on."""
    code = "loader = DataLoader(dataset, batch_size=loader.batch_size * 2)"
    slow = script(tmp_path, "slow.py")
    with casebook.script("count", slow, tmp_path, code) as (process, told):
        while told.stat().st_size < 20 * casebook.RATE.size:
            assert process.poll() is None
            time.sleep(0.02)
        handed = list(casebook.RATE.iter_unpack(told.read_bytes()[: 20 * casebook.RATE.size]))
    assert {size for _, size in handed} == {8.0}
