"""What `compare` finds: two runs side by side, as frozen values with their units in their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...advisors.schema.codec import dump
from ...advisors.schema.report_model import Range, Scalar, Verdict

SCHEMA = 2


@dataclass(frozen=True)
class Difference:
    """One figure of both runs: batches or samples a second, a share of the time, or microseconds.
    `change` is after over before for the throughput, else after less before; it lies in [low, high]
    but for chance.

    `real` is None where it cannot be said, and `reason` says why.
    """

    before: float | None = None
    after: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    real: bool | None = None
    reason: str | None = None

    @property
    def range(self) -> Range | None:
        """The change with its ends; None where it cannot be said."""
        if self.change is None or self.low is None or self.high is None:
            return None
        return Range(self.low, self.change, self.high)


@dataclass(frozen=True)
class Setting:
    """One thing that is not the same in both runs."""

    name: str
    before: Scalar
    after: Scalar


@dataclass(frozen=True)
class Followed:
    """Advice of the first run that the second has followed, with the gain that was predicted for
    it, and for the steps of the plan up to it together."""

    title: str
    predicted: Range
    together: Range


@dataclass(frozen=True)
class LoaderComparison:
    """One loader in both runs. Times are `per` batch, or per sample where the batches are of
    different sizes. `followed`: what can be seen to be, by the arguments that are now as advised,
    or by advice about code that does not come again."""

    name: str
    rank: int | None
    per: Literal["batch", "sample"]
    unit: Literal["batches/s", "samples/s"]
    throughput: Difference
    stall_share: Difference
    verdict_before: Verdict
    verdict_after: Verdict
    stages: Mapping[str, Difference]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
    followed: tuple[Followed, ...] = ()


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
