"""What a trial of a change of code has found."""

from __future__ import annotations

from dataclasses import dataclass

from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.ranges import Range

__all__ = ["Difference", "Range", "TryResult"]


@dataclass(frozen=True)
class Difference:
    """The first difference between what the two sides were handed: `batch` is its place, from 0.

    `batch` is None where no single batch differs: lengths of loaders, or distributions.
    """

    batch: int | None
    what: str


@dataclass(frozen=True)
class TryResult:
    """The first fields are those that `loaderscope try --format json` promises.

    `factor`: batches per second with the change over those without, with the 99 % range; None where
    it was not measured, see `notes` and `error`. `same_batches` is None where nothing was compared.
    `error`: one sentence, why the change could not be tried.
    """

    same_batches: bool | None = None
    compared: int = 0  # batches of each side
    first_difference: Difference | None = None
    factor: Range | None = None
    error: str | None = None
    memory_bytes: int | None = None  # more with the change: PSS of all processes of a side
    random: bool = False  # compared as distributions
    ended: bool = False  # the script ended within what was compared
    windows: int = 0  # pairs of windows that were timed
    seconds: float = 0.0  # that the trial took
    notes: tuple[str, ...] = ()

    @property
    def slower(self) -> bool:
        """Certainly slower, and by as much as counts."""
        return self.factor is not None and _counts(1 / self.factor.mid, 1 / self.factor.high)

    @property
    def faster(self) -> bool:
        """Certainly faster, and by as much as counts."""
        return self.factor is not None and _counts(self.factor.mid, self.factor.low)

    @property
    def holds(self) -> bool:
        """Whether the batches are the same, and it is not slower."""
        return self.error is None and self.same_batches is True and not self.slower


def _counts(middle: float, low: float) -> bool:
    return low > 1.0 and middle >= LEAST_GAIN
