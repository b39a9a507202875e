"""After how many epochs converting a data set has cost less time than it saved."""

from __future__ import annotations

import math
from dataclasses import dataclass

# A training that needs more epochs than this does not exist: "never".
MAX_EPOCHS = 10_000


@dataclass(frozen=True)
class EpochTimes:
    """Seconds of the first epoch, which finds nothing in the page cache, and of each later one."""

    first_s: float
    later_s: float

    def total_s(self, epochs: int) -> float:
        """Seconds of so many epochs."""
        return self.first_s + (epochs - 1) * self.later_s if epochs else 0.0


def epoch_times(
    samples: int, cold_s: float | None, warm_s: float, fits_memory: bool | None
) -> EpochTimes:
    """Epochs of `samples`, from the seconds a sample. Without a cold figure every epoch is taken as
    warm.

    A data set larger than memory is read anew in each epoch: a shuffled order defeats the cache.
    """
    cold = warm_s if cold_s is None else cold_s
    return EpochTimes(samples * cold, samples * (cold if fits_memory is False else warm_s))


def pays_after(convert_s: float, before: EpochTimes, after: EpochTimes) -> int | None:
    """The first number of epochs after which `convert_s` and the epochs after it took less than
    those before.

    None for never, or beyond MAX_EPOCHS. The first epoch may save more or less than the later ones.
    """
    if convert_s + after.first_s < before.first_s:
        return 1
    saved = before.later_s - after.later_s
    if saved <= 0:
        return None
    # convert + first' + (n-1) later' < first + (n-1) later, solved for n
    epochs = 2 + math.floor((convert_s + after.first_s - before.first_s) / saved)
    return epochs if epochs <= MAX_EPOCHS else None
