"""host-sync: lines that make each step wait for the device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as altered

from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.run.device_steps import DeviceSteps, Wait
from rule_cases import advice, case_of
from rule_rows import rows_of
from silence import silent

NAME = "host-sync"
ITEM = Wait("item", "train.py:41", "total += loss.item()", 1.0, 3e6)


def case(tmp_path: Path, waits: tuple[Wait, ...] = (ITEM,), looked_at: bool = True) -> Case:
    rows, epochs = rows_of(wait_ms=4.0, compute_ms=6.0)
    found = case_of(tmp_path, rows, epochs=epochs, process={"device": "cuda:0"})
    steps = DeviceSteps(8, 0.0, waits) if looked_at else None
    return replace(found, loader=replace(found.loader, device_steps=steps))


def test_the_line_is_named_with_what_it_waits(tmp_path: Path) -> None:
    other = Wait("__float__", "train.py:50", None, 1.0, 1e6)
    seen = case(tmp_path, (other, ITEM, altered(ITEM, a_step=0.125)))
    found = advice(NAME, seen)
    assert found.title == "Do not wait for the device in each step (train.py:41)"
    assert found.why.startswith("`total += loss.item()` at train.py:41")
    assert "4.00 ms per step" in found.why
    assert str(found.evidence["train.py:50"]) == "1.00 ms in float()"
    assert seen.whatif.asked == [{"synchronous": False}]  # type: ignore[union-attr]


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"waits": ()},
    {"looked_at": False},
    {"waits": (altered(ITEM, a_step=0.125),)},  # now and then
    {"waits": (altered(ITEM, mean_ns=0.2e6),)},  # a small part of the step
)
