"""What was seen of a few steps of a loop on a device: where the program copied and waited, and on what streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base.metadata import number, text

MAX_PLACES = 16


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
class Copying:
    """One of the program's lines that copied batches to the device, `a_step` so often a step. `line` as of a wait."""

    place: str
    line: str | None
    a_step: float


@dataclass(frozen=True)
class DeviceSteps:
    """`aside_share` is the part of the copies that were issued to another stream than the one that the batch was handed
    over on, None where there were no copies, or it cannot be told."""

    steps: int
    aside_share: float | None
    waits: tuple[Wait, ...]
    copies: tuple[Copying, ...] = ()

    @property
    def every_step(self) -> tuple[Wait, ...]:
        """Those that make each step wait."""
        return tuple(wait for wait in self.waits if wait.a_step >= 0.9)


def read_device_steps(data: Mapping[str, Any]) -> DeviceSteps | None:
    """What a loader's JSON holds of them; never raises, whatever that is."""
    raw = data.get("device_steps")
    if not isinstance(raw, dict):
        return None
    steps = number(raw, "steps")
    if not steps or steps < 1:
        return None
    waits, copies = [], []
    for each in _listed(raw, "waits"):
        call, place = text(each, "call"), text(each, "place")
        a_step, mean = number(each, "a_step"), number(each, "mean_ns")
        if a_step is not None and mean is not None and call and place:
            waits.append(Wait(call, place, text(each, "line"), a_step, mean))
    for each in _listed(raw, "copies"):
        place, a_step = text(each, "place"), number(each, "a_step")
        if place and a_step is not None:
            copies.append(Copying(place, text(each, "line"), a_step))
    return DeviceSteps(int(steps), number(raw, "aside_share"), tuple(waits), tuple(copies))


def _listed(raw: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = raw.get(name)
    return [each for each in listed[:MAX_PLACES] if isinstance(each, dict)] if isinstance(listed, list) else []
