"""The speed-up of a side, from windows of both sides over the same batches."""

from collections.abc import Sequence
from math import exp, hypot, log

import numpy as np

from ..advisors.schema.ranges import Range
from ..tuning.factor import LEAST_SPREAD, quantile

LEVEL = 0.99
FEWEST, ENOUGH = 3, 6  # pairs for a range, and for ending the trial
# Two processes of the same code differ by about this much, by their memory layout: Mytkowicz and
# others 2009, "Producing wrong data without doing anything obviously wrong".
OF_PROCESSES = 0.01
# Half-widths, as logarithms. A factor near 1 needs a narrower range.
NARROW, NARROW_SHARE = 0.04, 0.1


def factor_of(pairs: Sequence[Sequence[float]], starts: int) -> Range | None:
    """The ratio of the total times, with its range; None for too few pairs.

    `pairs`: seconds of the two sides for the same batches. `starts`: how often both sides were
    started. For the estimator and its variance see Cochran 1977, "Sampling Techniques", 6.4.
    """
    if len(pairs) < FEWEST:
        return None
    before, after = np.array(pairs).T
    ratio = float(before.sum() / after.sum())
    residuals = before - ratio * after
    count = len(pairs)
    variance = float((residuals**2).sum() * count / (count - 1)) / float(before.sum()) ** 2
    if count < ENOUGH:
        variance = max(variance, 2 * LEAST_SPREAD**2 / count)  # few may be equal by chance
    # A normal quantile: the difference of processes is not estimated from these windows.
    lasting = quantile(LEVEL, 1000) * OF_PROCESSES / starts**0.5
    half = hypot(quantile(LEVEL, count - 1) * variance**0.5, lasting)
    return Range(ratio * exp(-half), ratio, ratio * exp(half))


def is_narrow(found: Range | None, pairs: int) -> bool:
    """Whether the range is narrow enough to stop."""
    if found is None or pairs < ENOUGH:
        return False
    return log(found.high / found.mid) <= max(NARROW, NARROW_SHARE * abs(log(found.mid)))
