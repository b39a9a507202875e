"""pin-memory: on for pageable copies and for unpacking, off where it costs more, nothing without a
device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loaderscope.advisors.case.case import Case
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    asked,
    case_of,
    rejection,
    unmeasured,
    workers_config,
)
from rule_rows import worker_loop
from silence import silent

NAME = "pin-memory"
MS = 1_000_000


def device_case(
    path: Path, pin: bool = False, device: str | None = "cuda:0", **columns: Any
) -> Case:
    size = 38_000_000
    copies = {"h2d_ns": 2 * MS, "h2d_bytes": size, "h2d_copies": 2, "h2d_pinned": 0}
    told = {"bytes": size, **copies, **columns}
    rows = worker_loop(100, wait_ms=5.0, compute_ms=10.0, **told)
    facts: Any = {"process": {"device": device}, "config": workers_config(2, pin_memory=pin)}
    return case_of(path, rows, whatif=FakeWhatIf(1.2), **facts)


def test_on_for_pageable_copies(tmp_path: Path) -> None:
    case = device_case(tmp_path)
    found = advice(NAME, case)
    assert found.params == {"pin_memory": True}
    assert arguments(found.code)["pin_memory"] == "True"
    assert "non_blocking=True" in found.code
    assert asked(case) == [{"pin_memory": True, "h2d": (0.25, 0.65), "non_blocking": True}]


def test_on_moves_unpacking_to_a_thread(tmp_path: Path) -> None:
    case = device_case(tmp_path, unpack_ms=3.0, h2d_ns=100_000, h2d_pinned=0)
    assert "a thread can do" in advice(NAME, case).why
    assert asked(case) == [{"pin_memory": True}]


test_silent_one_step_away = silent(
    NAME,
    device_case,
    {"h2d_ns": 300_000},
    {"h2d_pinned": 2},
    {"bytes": 10_000},
    {"pin": True, "pin_ns": 200_000, "h2d_ns": MS},  # not waited for
    {"device": None, "h2d_ns": None},
)


def test_where_no_copies_were_timed(tmp_path: Path) -> None:
    assert unmeasured(NAME, device_case(tmp_path / "a", h2d_ns=None))
    without_a_device = device_case(tmp_path / "b", pin=True, device=None, h2d_ns=None)
    assert rejection(NAME, without_a_device).predicted.mid == 1.0
