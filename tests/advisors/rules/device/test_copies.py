"""h2d-copies: many small or blocking copies, pinning without effect. pin-memory: on for pageable
copies and for unpacking, nothing without a device. host-sync: lines that make each step wait."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace as altered

from builders import MS
from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.run.device_steps import Copying, DeviceSteps, Wait
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    asked,
    case_of,
    ran,
    rejection,
    shown,
    unmeasured,
    workers_config,
)
from rule_rows import US, rows_of, worker_loop
from silence import silent
from storage_cases import equal

COPIES = "h2d-copies"


def copied(tmp_path: Path, device: str | None = "cuda:0", pin: bool = True, **columns: Any) -> Case:
    told = {"h2d_ns": 800 * US, "h2d_host_ns": 300 * US, "h2d_copies": 2, "h2d_bytes": 4_000_000}
    told |= {"h2d_pinned": 2, "h2d_blocking": 0, **columns}
    known = {name: value for name, value in told.items() if value is not None}
    rows, epochs = rows_of(wait_ms=1.0, compute_ms=4.0, **known)
    facts: Any = {"process": {"device": device}, "config": {"pin_memory": pin}}
    return case_of(tmp_path, rows, epochs=epochs, whatif=FakeWhatIf(), **facts)


MANY = {"h2d_copies": 40, "h2d_bytes": 400_000, "h2d_pinned": 40}
UNPINNED = {"h2d_pinned": 0, "h2d_blocking": 2}


def test_many_small_copies_are_packed(tmp_path: Path) -> None:
    seen = copied(tmp_path, **MANY)
    found = advice(COPIES, seen)
    assert shown(found, "copies per batch", "a copy") == ("40", "10.0 kB")
    (times,) = (each["h2d"] for each in asked(seen))
    low, high = 40 * 0.5 + 20 + 0.5 * 20, 40 * 5 + 200 + 2 * 20
    assert times == pytest.approx((low / 800, high / 800))
    batch = {"x": torch.randn(3, 2), "y": torch.arange(4), "z": torch.randn(5)}
    assert equal(ran(found.code)["to_device"](batch, "cpu"), batch)


@pytest.mark.parametrize(
    ("columns", "title", "code", "evidence"),
    [
        ({"h2d_blocking": 2}, "", "non_blocking=True", ("blocking copies", "2 of 2")),
        (UNPINNED, "pin_memory method", "", ("pinned copies", "0 of 2")),
    ],
)
def test_copies_that_pinning_does_not_help_are_named(tmp_path, columns, title, code, evidence):
    found = advice(COPIES, copied(tmp_path, **columns))
    assert title in found.title and code in found.code
    assert shown(found, evidence[0]) == evidence[1:]


def test_the_lines_that_copy_are_named(tmp_path: Path) -> None:
    once, most = (8, None, 1.0), (7, "x = x.to(device)", 39.0)
    lines = tuple(Copying(f"train.py:{n}", *more) for n, *more in (once, most, (1, None, 0.1)))
    found = copied(tmp_path, **MANY)
    seen = replace(found, loader=replace(found.loader, device_steps=DeviceSteps(8, 0.0, (), lines)))
    evidence = advice(COPIES, seen).evidence.items()
    assert [(name, str(value)) for name, value in evidence][:3] == [
        ("copied at train.py:7", "x = x.to(device)"),
        ("copied at train.py:8", "1 per step"),
        ("copies per batch", "40"),
    ]


test_copies_are_silent = silent(
    COPIES,
    copied,
    {"device": None, "h2d_blocking": 2},
    {},  # pinned and not blocking
    {"pin": False, "h2d_blocking": 2, "h2d_pinned": 0},  # what pin-memory speaks of
    {"h2d_blocking": 2, "h2d_ns": 100 * US, "h2d_host_ns": 10 * US},  # a small part of the step
    {**MANY, "h2d_bytes": 40_000_000},  # many, but large
)


PINNING = "pin-memory"


def unpinned(path: Path, pin: bool = False, device: str | None = "cuda:0", **columns: Any) -> Case:
    size = 38_000_000
    copies = {"h2d_ns": 2 * MS, "h2d_bytes": size, "h2d_copies": 2, "h2d_pinned": 0}
    told = {"bytes": size, **copies, **columns}
    rows = worker_loop(100, wait_ms=5.0, compute_ms=10.0, **told)
    facts: Any = {"process": {"device": device}, "config": workers_config(2, pin_memory=pin)}
    return case_of(path, rows, whatif=FakeWhatIf(1.2), **facts)


def test_on_for_pageable_copies(tmp_path: Path) -> None:
    case = unpinned(tmp_path)
    found = advice(PINNING, case)
    assert found.params == {"pin_memory": True} and "non_blocking=True" in found.code
    assert arguments(found.code)["pin_memory"] == "True"
    assert asked(case) == [{"pin_memory": True, "h2d": (0.25, 0.65), "non_blocking": True}]


def test_on_moves_unpacking_to_a_thread(tmp_path: Path) -> None:
    case = unpinned(tmp_path, unpack_ms=3.0, h2d_ns=100_000, h2d_pinned=0)
    assert "a thread can do" in advice(PINNING, case).why
    assert asked(case) == [{"pin_memory": True}]


test_pinning_is_silent = silent(
    PINNING,
    unpinned,
    {"h2d_ns": 300_000},
    {"h2d_pinned": 2},
    {"bytes": 10_000},
    {"pin": True, "pin_ns": 200_000, "h2d_ns": MS},  # not waited for
    {"device": None, "h2d_ns": None},
)


def test_where_no_copies_were_timed(tmp_path: Path) -> None:
    untimed = copied(tmp_path / "many", h2d_ns=None, h2d_copies=None)
    assert "not timed" in unmeasured(COPIES, untimed)
    assert unmeasured(PINNING, unpinned(tmp_path / "a", h2d_ns=None))
    without_a_device = unpinned(tmp_path / "b", pin=True, device=None, h2d_ns=None)
    assert rejection(PINNING, without_a_device).predicted.mid == 1.0


SYNC = "host-sync"
ITEM = Wait("item", "train.py:41", "total += loss.item()", 1.0, 3e6)


def waiting(tmp_path: Path, waits: tuple[Wait, ...] = (ITEM,), looked_at: bool = True) -> Case:
    rows, epochs = rows_of(wait_ms=4.0, compute_ms=6.0)
    found = case_of(tmp_path, rows, epochs=epochs, process={"device": "cuda:0"})
    steps = DeviceSteps(8, 0.0, waits) if looked_at else None
    return replace(found, loader=replace(found.loader, device_steps=steps))


def test_the_line_is_named_with_what_it_waits(tmp_path: Path) -> None:
    other = Wait("__float__", "train.py:50", None, 1.0, 1e6)
    seen = waiting(tmp_path, (other, ITEM, altered(ITEM, a_step=0.125)))
    found = advice(SYNC, seen)
    assert found.title == "Do not wait for the device in each step (train.py:41)"
    assert found.why.startswith("`total += loss.item()` at train.py:41")
    assert "4.00 ms per step" in found.why
    assert shown(found, "train.py:50") == ("1.00 ms in float()",)
    assert asked(seen) == [{"synchronous": False}]


test_sync_is_silent = silent(
    SYNC,
    waiting,
    {"waits": ()},
    {"looked_at": False},
    {"waits": (altered(ITEM, a_step=0.125),)},  # now and then
    {"waits": (altered(ITEM, mean_ns=0.2e6),)},  # a small part of the step
)
