"""What trying the batched form of a loader showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOW = "now"
GETITEMS = "__getitems__"
SAMPLER = "whole-batch sampler"
SLICES = "slices in order"


@dataclass(frozen=True)
class ProbeResult:
    """What trying it showed. Times are medians a batch in µs of fetching and collating alone.

    `equal` is None where it could not be compared, and `reason` says why. `forms` are "now",
    "__getitems__" (a list of indices), "whole-batch sampler" (a tensor of indices) and "slices in
    order" (where the data set can be sliced). `factor` is the time now over that of the whole-batch
    sampler: above 1 it is faster.
    """

    equal: bool | None
    reason: str | None = None
    batch_size: int | None = None
    checked_batches: int = 0
    rounds: int = 0
    forms: Mapping[str, float] = field(default_factory=dict)

    @property
    def factor(self) -> float | None:
        now, best = self.forms.get(NOW), self.forms.get(SAMPLER)
        return now / best if now and best else None

    @property
    def fastest(self) -> str | None:
        """The fastest form tried, None where none was."""
        return min(self.forms, key=lambda name: self.forms[name]) if self.forms else None
