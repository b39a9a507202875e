"""The result of a trial."""

from dataclasses import dataclass

from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.ranges import Range


@dataclass(frozen=True)
class Difference:
    """The first difference between the batches of the two sides. `batch` is its index."""

    batch: int
    what: str


@dataclass(frozen=True)
class TryResult:
    """The first five fields are part of the documented JSON of `loaderscope try`.

    `factor`: batches per second with the change over those without, with its 99 % range. It is None
    if it was not measured; `notes` or `error` say why. `same_batches` is None if nothing was
    compared. `error`: one sentence, why the change could not be tried.
    """

    same_batches: bool | None = None
    compared: int = 0  # batches of each side
    first_difference: Difference | None = None
    factor: Range | None = None
    error: str | None = None
    memory_bytes: int | None = None  # added by the change: PSS of all processes of a side
    ended: bool = False  # the script ended while batches were compared
    windows: int = 0  # pairs of windows
    seconds: float = 0.0  # of the whole trial
    notes: tuple[str, ...] = ()

    @property
    def slower(self) -> bool:
        """Certainly slower, and by enough to matter."""
        return self.factor is not None and _counts(1 / self.factor.mid, 1 / self.factor.high)

    @property
    def faster(self) -> bool:
        """Certainly faster, and by enough to matter."""
        return self.factor is not None and _counts(self.factor.mid, self.factor.low)

    @property
    def holds(self) -> bool:
        """Whether the batches are the same, and it is not slower."""
        return self.error is None and self.same_batches is True and not self.slower


def _counts(middle: float, low: float) -> bool:
    return low > 1.0 and middle >= LEAST_GAIN
