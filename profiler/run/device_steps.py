"""What was seen of a few steps of a loop on a device: where the program waited for it, and on what stream it copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.metadata import number, text

MAX_WAITS = 16


@dataclass(frozen=True)
class Wait:
    """One of the program's lines that waited for the device: `call` is what it called, `a_step` how often a step,
    `mean_ns` how long each time. `line` is its source, None where that was not looked at."""

    call: str
    place: str
    line: str | None
    a_step: float
    mean_ns: float


@dataclass(frozen=True)
class DeviceSteps:
    """`aside_share` is the part of the copies that were issued to another stream than the one that the batch was handed
    over on, None where there were no copies, or it cannot be told."""

    steps: int
    aside_share: float | None
    waits: tuple[Wait, ...]

    @property
    def every_step(self) -> tuple[Wait, ...]:
        """Those that make each step wait."""
        return tuple(wait for wait in self.waits if wait.a_step >= 0.9)


def read_device_steps(data: Mapping[str, Any]) -> DeviceSteps | None:
    """What a loader's JSON holds of them; never raises, whatever that is."""
    raw = data.get("device_steps")
    if not isinstance(raw, dict):
        return None
    steps, listed = number(raw, "steps"), raw.get("waits")
    if not steps or steps < 1:
        return None
    waits = []
    for each in listed[:MAX_WAITS] if isinstance(listed, list) else ():
        a_step, mean = (number(each, name) if isinstance(each, dict) else None for name in ("a_step", "mean_ns"))
        call, place = (text(each, name) if isinstance(each, dict) else None for name in ("call", "place"))
        if a_step is not None and mean is not None and call and place:
            waits.append(Wait(call, place, text(each, "line"), a_step, mean))
    return DeviceSteps(int(steps), number(raw, "aside_share"), tuple(waits))
