"""One candidate against the best settings so far, in turns: A B A B … A.

A machine that becomes slower or faster affects both alike.
"""

from typing import Literal

from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.report_model import Range
from .evidence.settings import Settings
from .factor import Fit, product
from .window import Window, left_out

Outcome = Literal["proven", "not faster", "undecided", "failed", "not tried"]

# A gain is proven at this level. What is reported is at the other, that of all ranges in reports,
# which is enough to leave a candidate: time is worth more than a small gain.
DECISION_LEVEL, REPORT_LEVEL = 0.99, 0.8
MOST_PAIRS = 6  # of windows
# What promises as much goes on for longer: a tenth that windows which differ by a tenth are to show
# takes twenty pairs.
PROMISING, PROMISING_PAIRS = 1.05, 24
HOPELESS = 0.9  # one window so far below both of the base's before and after it is enough
# Of two that are as good, the one that costs less is preferred; what costs more must be better by
# this.
BETTER = 1.015


class Trial:
    """Of `candidate` against `base`, the best so far."""

    def __init__(self, base: Settings, candidate: Settings, predicted: Range | None = None) -> None:
        self.base, self.candidate, self.predicted = base, candidate, predicted
        self.of_base: Range | None = None  # how many times as fast as the user's own the base is
        self.rates: dict[Settings, list[float]] = {base: [], candidate: []}
        self.outcome: Outcome | None = None
        self.why: str | None = None
        self.measured: Range | None = None  # over the user's own settings
        self.seconds = 0.0
        self.waits = True  # whether the loop waits for data with the candidate
        self.gain = 1.0  # over the base

    def window(self, epoch_batches: int | None) -> Window:
        """The next window, in epochs of so many batches."""
        return Window(self.turn, left_out(self.turn, epoch_batches), epoch_batches)

    @property
    def turn(self) -> Settings:
        """Whose turn it is."""
        base, candidate = self.rates.values()
        return self.base if len(base) <= len(candidate) else self.candidate

    def add(self, window: Window) -> None:
        """A window has ended."""
        self.rates[window.settings].append(window.rate)
        if window.settings == self.candidate:
            self.waits = window.waits
        if self.turn == self.base:
            return  # each of the candidate's windows lies between two of the base's
        base, candidate = self.rates.values()
        if not candidate:
            return
        fit = Fit(base, candidate)
        sure, likely = map(fit.factor, (DECISION_LEVEL, REPORT_LEVEL))
        if fit.few and not (candidate[0] < HOPELESS * min(base) and likely.high < LEAST_GAIN):
            return
        self.gain = likely.mid
        self.measured = self._over_own(likely)
        if likely.high < LEAST_GAIN:
            self.outcome = "not faster"
        elif sure.low > LEAST_GAIN:
            self.outcome = "proven"
        elif len(candidate) >= MOST_PAIRS:
            self._judge(likely, sure, len(candidate))

    def _judge(self, likely: Range, sure: Range, pairs: int) -> None:
        """It has had its turns. A first candidate is proven if it is certainly faster, and probably
        by enough; a promising one goes on."""
        first = self.of_base is None
        if (first and likely.low > LEAST_GAIN and sure.low > 1.0) or self._better(likely.mid, sure):
            self.outcome = "proven"
        elif likely.mid <= PROMISING or pairs >= PROMISING_PAIRS:
            self.outcome = "undecided"

    def _over_own(self, over_base: Range) -> Range:
        return over_base if self.of_base is None else product(self.of_base, over_base)

    def _better(self, middle: float, sure: Range) -> bool:
        """Whether it is proven over the user's own settings, and probably better than the base."""
        if self.of_base is None or self._over_own(sure).low < LEAST_GAIN:
            return False
        cheaper = self.candidate.num_workers < self.base.num_workers
        return middle > (1.0 if cheaper else BETTER)

    def end(self, outcome: Outcome, why: str | None = None) -> None:
        """It cannot go on."""
        self.outcome, self.why = outcome, why
