"""What trying the batched form of a loader showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOW = "now"
GETITEMS = "__getitems__"
SAMPLER = "whole-batch sampler"


@dataclass(frozen=True)
class ProbeResult:
    """What trying it showed. Times are medians per batch in µs of fetching and collating alone.

    `equal` is None if it could not be compared, and `reason` says why. `forms` are "now",
    "__getitems__" (a list of indices) and "whole-batch sampler" (a tensor of indices). `factor` is
    the time now over that of the whole-batch sampler: above 1 it is faster.
    """

    equal: bool | None
    reason: str | None = None
    checked_batches: int = 0
    forms: Mapping[str, float] = field(default_factory=dict)

    @property
    def factor(self) -> float | None:
        now, best = self.forms.get(NOW), self.forms.get(SAMPLER)
        return now / best if now and best else None
