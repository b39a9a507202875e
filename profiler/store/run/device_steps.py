"""What was seen of a few steps of a loop on a device: where the program copied and waited, and on
what streams."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ...base.tolerant import Text

MAX_PLACES = 16


class Wait(Struct, frozen=True):
    """One of the program's lines that waited for the device: `call` is what it called, `a_step` how
    often a step, `mean_ns` how long each time. `line` is its source, None where that was not looked
    at."""

    call: Text
    place: Text
    line: Text | None
    a_step: float
    mean_ns: float


class Copying(Struct, frozen=True):
    """One of the program's lines that copied batches to the device, `a_step` so often a step.
    `line` as of a wait."""

    place: Text
    line: Text | None
    a_step: float


class DeviceSteps(Struct, frozen=True):
    """`aside_share` is the part of the copies that were issued to another stream than the one that
    the batch was handed over on, None where there were no copies, or it is not known."""

    steps: Annotated[int, Meta(ge=1)]
    aside_share: float | None = None
    waits: Annotated[tuple[Wait, ...], Meta(max_length=MAX_PLACES)] = ()
    copies: Annotated[tuple[Copying, ...], Meta(max_length=MAX_PLACES)] = ()

    @property
    def every_step(self) -> tuple[Wait, ...]:
        """Those that make each step wait."""
        return tuple(wait for wait in self.waits if wait.a_step >= 0.9)
