"""h2d-copies: many small copies, blocking copies, pinning without effect; only on a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.run.device_steps import Copying, DeviceSteps
from rule_cases import FakeWhatIf, advice, asked, case_of, ran, unmeasured
from rule_rows import US, rows_of
from silence import silent
from storage_cases import equal

NAME = "h2d-copies"


def case(tmp_path: Path, device: str | None = "cuda:0", pin: bool = True, **columns: Any) -> Case:
    told = {
        "h2d_ns": 800 * US,
        "h2d_host_ns": 300 * US,
        "h2d_copies": 2,
        "h2d_bytes": 4_000_000,
        "h2d_pinned": 2,
        "h2d_blocking": 0,
        **columns,
    }
    known = {name: value for name, value in told.items() if value is not None}
    rows, epochs = rows_of(wait_ms=1.0, compute_ms=4.0, **known)
    facts: Any = {"process": {"device": device}, "config": {"pin_memory": pin}}
    return case_of(tmp_path, rows, epochs=epochs, whatif=FakeWhatIf(), **facts)


def test_many_small_copies_are_packed(tmp_path: Path) -> None:
    seen = case(tmp_path, h2d_copies=40, h2d_bytes=400_000, h2d_pinned=40)
    found = advice(NAME, seen)
    assert str(found.evidence["copies per batch"]) == "40"
    assert str(found.evidence["a copy"]) == "10.0 kB"
    (times,) = (each["h2d"] for each in asked(seen))
    low, high = 40 * 0.5 + 20 + 0.5 * 20, 40 * 5 + 200 + 2 * 20
    assert times == pytest.approx((low / 800, high / 800))
    batch = {"x": torch.randn(3, 2), "y": torch.arange(4), "z": torch.randn(5)}
    moved = ran(found.code)["to_device"](batch, "cpu")
    assert equal(moved, batch)


UNPINNED = {"h2d_pinned": 0, "h2d_blocking": 2}


@pytest.mark.parametrize(
    ("columns", "title", "code", "evidence"),
    [
        ({"h2d_blocking": 2}, "", "non_blocking=True", ("blocking copies", "2 of 2")),
        (UNPINNED, "pin_memory method", "", ("pinned copies", "0 of 2")),
    ],
)
def test_copies_that_pinning_does_not_help_are_named(tmp_path, columns, title, code, evidence):
    found = advice(NAME, case(tmp_path, **columns))
    assert title in found.title and code in found.code
    assert str(found.evidence[evidence[0]]) == evidence[1]


def test_the_lines_that_copy_are_named(tmp_path: Path) -> None:
    lines = (
        Copying("train.py:8", None, 1.0),
        Copying("train.py:7", "x = x.to(device)", 39.0),
        Copying("a.py:1", None, 0.1),
    )
    found = case(tmp_path, h2d_copies=40, h2d_bytes=400_000, h2d_pinned=40)
    seen = replace(found, loader=replace(found.loader, device_steps=DeviceSteps(8, 0.0, (), lines)))
    evidence = advice(NAME, seen).evidence.items()
    assert [(name, str(value)) for name, value in evidence][:3] == [
        ("copied at train.py:7", "x = x.to(device)"),
        ("copied at train.py:8", "1 per step"),
        ("copies per batch", "40"),
    ]


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"device": None, "h2d_blocking": 2},
    {},  # pinned and not blocking
    {"pin": False, "h2d_blocking": 2, "h2d_pinned": 0},  # what pin-memory speaks of
    {"h2d_blocking": 2, "h2d_ns": 100 * US, "h2d_host_ns": 10 * US},  # a small part of the step
    {"h2d_copies": 40, "h2d_bytes": 40_000_000, "h2d_pinned": 40},  # many, but large
)


def test_copies_that_were_not_timed_cannot_be_judged(tmp_path: Path) -> None:
    assert "not timed" in unmeasured(NAME, case(tmp_path, h2d_ns=None, h2d_copies=None))
