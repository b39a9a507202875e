"""What `compare` finds: two runs side by side, as frozen values with their units in their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...advisors.schema.codec import dump
from ...advisors.schema.report_model import Range, Verdict
from ...profiler.base.metadata import Scalar

SCHEMA = 3


@dataclass(frozen=True)
class Throughput:
    """Batches or samples a second of both runs. `factor` is after over before, which lies in its
    range but for chance; `real`, whether it is beyond chance and worth acting on. Both are None
    where that cannot be said, and `reason` says why."""

    unit: Literal["batches/s", "samples/s"]
    before: float | None = None
    after: float | None = None
    factor: Range | None = None
    real: bool | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Setting:
    """One thing that is not the same in both runs."""

    name: str
    before: Scalar
    after: Scalar


@dataclass(frozen=True)
class LoaderComparison:
    """One loader in both runs: `stall_share` and `stages_us` (the mean per batch) are what the
    report of each run says, before and after."""

    name: str
    rank: int | None
    throughput: Throughput
    stall_share: tuple[float | None, float | None]
    verdicts: tuple[Verdict, Verdict]
    stages_us: Mapping[str, tuple[float | None, float | None]]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Two runs, loader by loader. `only_before` and `only_after` name loaders that the other run
    lacks."""

    schema: int
    before: str
    after: str
    loaders: tuple[LoaderComparison, ...]
    settings: tuple[Setting, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self, indent: int | None = 2) -> str:
        """The comparison as JSON text."""
        return dump(self, indent)
