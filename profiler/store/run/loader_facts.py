"""A loader's description: `loader{N}.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ...base.metadata import Scalars
from ...base.tolerant import Text
from ..inspection import Inspection
from ..making import Making
from .device_steps import DeviceSteps


class Overhead(Struct, frozen=True):
    """What recording costs a batch, as it was measured when the loop began."""

    hook_ns: float | None = None


class LoaderFacts(Struct, frozen=True, kw_only=True):
    """`config`: how it is made and used. `reasons`: column or metric → why it was not measured."""

    format: int | None = None
    index: int | None = None
    name: Text | None = None
    kind: Literal["dataloader", "iterable"] = "dataloader"
    config: Scalars = {}
    reasons: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    overhead: Overhead = Overhead()
    inspection: Inspection = Inspection()
    device_steps: DeviceSteps | None = None
    made: Making = Making()
