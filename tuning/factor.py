"""How many times as fast one setting is as another, from windows of both that took turns.

The interval comes from how windows of the same setting differ, so other programs on the machine
make it wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, log

import numpy as np

from ..advisors.schema.report_model import Range
from .student import quantile

FEWEST_WINDOWS = 5
LEAST_SPREAD = 0.03  # of windows, as logarithms: two of them may be as one by chance
# How much earlier trials' windows of the same loader count for how windows differ, in windows:
# Smyth's moderated t.
EARLIER = 6.0


@dataclass(frozen=True)
class Spread:
    """How windows of the same settings differed in earlier trials: squared logarithms, and degrees
    of freedom."""

    squares: float = 0.0
    freedom: int = 0

    def with_(self, fit: Fit) -> Spread:
        """With this trial added."""
        if fit.few:
            return self
        return Spread(self.squares + fit.squares, self.freedom + fit.freedom)


class Fit:
    """Least squares on windows that took turns. The logarithm of a rate is a level, a drift per
    window, and what the candidate adds."""

    def __init__(self, base: Sequence[float], candidate: Sequence[float]) -> None:
        """From the rates of windows; the base begins."""
        windows = min(2 * len(candidate) + 1, 2 * len(base))
        self.few = windows < FEWEST_WINDOWS  # then no drift is asked for
        turn = np.arange(windows)
        logs = np.log([(candidate if number % 2 else base)[number // 2] for number in turn])
        causes = np.column_stack([turn % 2, np.ones(windows), turn])[:, : 2 if self.few else 3]
        found, *_ = np.linalg.lstsq(causes, logs, rcond=None)
        self.middle = float(found[0])
        self.squares = float(((logs - causes @ found) ** 2).sum())
        self.freedom = windows - causes.shape[1]
        self._weight = float(np.linalg.pinv(causes.T @ causes)[0, 0])

    def factor(self, level: float, before: Spread) -> Range:
        """The candidate's rate over the base's, and the range that holds it with this probability.

        The variance is moderated by that of earlier trials (Smyth 2004, "Linear models and
        empirical Bayes methods").
        """
        earlier = min(EARLIER, before.freedom)
        known = earlier * before.squares / before.freedom if before.freedom else 0.0
        freedom = self.freedom + earlier
        variance = (self.squares + known) / freedom
        if self.few:
            variance = max(variance, LEAST_SPREAD**2)
        half = quantile(level, round(freedom)) * (variance * self._weight) ** 0.5
        return Range(exp(self.middle - half), exp(self.middle), exp(self.middle + half))


def product(one: Range, other: Range) -> Range:
    """The product of two factors that were measured independently."""
    mid = one.mid * other.mid
    low = exp(-hypot(log(one.mid / one.low), log(other.mid / other.low)))
    high = exp(hypot(log(one.high / one.mid), log(other.high / other.mid)))
    return Range(mid * low, mid, mid * high)
