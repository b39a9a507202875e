"""How many times as fast one setting is as another, from windows of both that took turns.

The interval comes from how windows of the same setting differ, so other programs on the machine
make it wider.
"""

from collections.abc import Sequence
from functools import cache
from math import exp, hypot, log, pi, sqrt, tan

import numpy as np

from ..advisors.schema.report_model import Range

FEWEST_WINDOWS = 5
LEAST_SPREAD = 0.03  # of windows, as logarithms: two of them may be as one by chance
GRID = 10_001  # angles: quantiles of Student's distribution to five digits


class Fit:
    """Least squares on windows that took turns. The logarithm of a rate is a level, a drift per
    window, and what the candidate adds. What is left over says how windows of the same settings
    differ."""

    def __init__(self, base: Sequence[float], candidate: Sequence[float]) -> None:
        """From the rates of windows; the base begins."""
        windows = min(2 * len(candidate) + 1, 2 * len(base))
        self.few = windows < FEWEST_WINDOWS  # then no drift is asked for
        turn = np.arange(windows)
        logs = np.log([(candidate if number % 2 else base)[number // 2] for number in turn])
        causes = np.column_stack([turn % 2, np.ones(windows), turn])[:, : 2 if self.few else 3]
        found, *_ = np.linalg.lstsq(causes, logs, rcond=None)
        self.middle = float(found[0])
        self._freedom = windows - causes.shape[1]
        self._variance = float(((logs - causes @ found) ** 2).sum()) / self._freedom
        if self.few:
            self._variance = max(self._variance, LEAST_SPREAD**2)
        self._weight = float(np.linalg.pinv(causes.T @ causes)[0, 0])

    def factor(self, level: float) -> Range:
        """The candidate's rate over the base's, and the range that holds it with this
        probability."""
        half = quantile(level, self._freedom) * (self._variance * self._weight) ** 0.5
        return Range(exp(self.middle - half), exp(self.middle), exp(self.middle + half))


def product(one: Range, other: Range) -> Range:
    """The product of two factors that were measured independently."""
    mid = one.mid * other.mid
    low = exp(-hypot(log(one.mid / one.low), log(other.mid / other.low)))
    high = exp(hypot(log(one.high / one.mid), log(other.high / other.mid)))
    return Range(mid * low, mid, mid * high)


@cache
def quantile(level: float, freedom: int) -> float:
    """The t that a value of Student's distribution lies within, either way, with this probability.

    With t = sqrt(freedom) tan(angle), the density is cos(angle) ** (freedom - 1), which is summed
    up here (Abramowitz and Stegun, 26.7.1).
    """
    angles = np.linspace(0, pi / 2, GRID)
    density = np.cos(angles) ** (freedom - 1)
    within = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return sqrt(freedom) * tan(float(np.interp(level, within / within[-1], angles)))
