"""After how many epochs converting a data set has cost less time than it saved."""

from __future__ import annotations

import math
from typing import NamedTuple

# A training of more epochs than this does not exist: "never".
MAX_EPOCHS = 10_000


class EpochTimes(NamedTuple):
    """Seconds of the first epoch, which finds nothing in the page cache, and of each later one."""

    first_s: float
    later_s: float


def pays_after(convert_s: float, before: EpochTimes, after: EpochTimes) -> int | None:
    """The first number of epochs after which `convert_s` and the epochs after it took less than
    those before.

    None for never, or beyond MAX_EPOCHS. The first epoch may save more or less than the later ones.
    """
    more = convert_s + after.first_s - before.first_s
    if more < 0:
        return 1
    saved = before.later_s - after.later_s
    # convert + first' + (n-1) later' < first + (n-1) later, solved for n
    epochs = 2 + math.floor(more / saved) if saved > 0 else math.inf
    return int(epochs) if epochs <= MAX_EPOCHS else None
