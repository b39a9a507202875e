"""pin-memory: on for pageable copies and for unpacking, off where it costs more, nothing without a
device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    case_of,
    outcomes,
    rejection,
    unmeasured,
    workers_config,
)
from rule_rows import worker_loop

NAME = "pin-memory"
MS = 1_000_000


def device_case(
    path: Path,
    pin: bool = False,
    wait_ms: float = 5.0,
    device: str | None = "cuda:0",
    **columns: Any,
) -> Case:
    told = {
        "bytes": 38_000_000,
        "h2d_ns": 2 * MS,
        "h2d_bytes": 38_000_000,
        "h2d_copies": 2,
        "h2d_pinned": 0,
        **columns,
    }
    rows = worker_loop(100, wait_ms=wait_ms, compute_ms=10.0, **told)
    return case_of(path, rows, whatif=FakeWhatIf(1.2), process={"device": device},
                   config=workers_config(2, pin_memory=pin))  # fmt: skip


def test_on_for_pageable_copies(tmp_path: Path) -> None:
    case = device_case(tmp_path)
    found = advice(NAME, case)
    assert found.params == {"pin_memory": True}
    assert arguments(found.code)["pin_memory"] == "True"
    assert "non_blocking=True" in found.code
    assert str(found.evidence["copies per second"]) == "19.0 GB"
    assert case.whatif.asked == [{"pin_memory": True, "h2d": (0.25, 0.65), "non_blocking": True}]  # type: ignore[union-attr]


def test_on_moves_unpacking_to_a_thread(tmp_path: Path) -> None:
    case = device_case(tmp_path, unpack_ms=3.0, h2d_ns=100_000, h2d_pinned=0)
    found = advice(NAME, case)
    assert "a thread can do" in found.why
    assert case.whatif.asked == [{"pin_memory": True}]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "change", [{"h2d_ns": 300_000}, {"h2d_pinned": 2}, {"bytes": 10_000}]
)  # fmt: skip
def test_silent_one_step_away(tmp_path: Path, change: dict[str, Any]) -> None:
    assert outcomes(NAME, device_case(tmp_path, **change)) == []


def test_unmeasured_copies_are_said(tmp_path: Path) -> None:
    case = device_case(tmp_path, h2d_ns=None)
    assert unmeasured(NAME, case)


def test_off_where_pinning_is_waited_for(tmp_path: Path) -> None:
    case = device_case(tmp_path, pin=True, pin_ns=4 * MS, h2d_ns=MS)
    found = advice(NAME, case)
    assert found.params == {"pin_memory": False}
    assert (
        "pin_memory" not in arguments(found.code) or arguments(found.code)["pin_memory"] == "False"
    )


def test_kept_on_where_it_is_not_waited_for(tmp_path: Path) -> None:
    assert outcomes(NAME, device_case(tmp_path, pin=True, pin_ns=200_000, h2d_ns=MS)) == []


@pytest.mark.parametrize(("pin", "rejected"), [(True, True), (False, False)])
def test_without_a_device(tmp_path: Path, pin: bool, rejected: bool) -> None:
    case = device_case(tmp_path, pin=pin, device=None, h2d_ns=None)
    if rejected:
        assert rejection(NAME, case).predicted.mid == 1.0
    else:
        assert outcomes(NAME, case) == []
