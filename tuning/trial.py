"""One candidate against the best settings so far, in turns: A B A B … A.

A machine that becomes slower or faster affects both alike.
"""

from __future__ import annotations

from typing import Literal

from ..advisors.schema.figures import times
from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.report_model import Range
from .evidence.settings import Settings
from .factor import Fit, product
from .window import Headroom, Window, left_out

Outcome = Literal["proven", "not faster", "undecided", "failed", "not tried"]

# A gain is proven at this level. What is reported is at the other, that of all ranges in reports,
# which is enough to leave a candidate: time is worth more than a small gain.
DECISION_LEVEL, REPORT_LEVEL = 0.99, 0.8
MOST_PAIRS = 6  # of windows
# What promises as much goes on for longer: a tenth that windows which differ by a tenth are to show
# takes twenty pairs.
PROMISING, PROMISING_PAIRS, PROMISING_S = 1.05, 24, 25.0
HOPELESS = 0.9  # one window so far below both of the base's before and after it is enough
# Against settings that are proven already, or where little is to be had, a trial is short. What is
# then as good is preferred where it costs less, and where it costs more, if it is better by this.
SHORT_PAIRS, BETTER = 3, 1.015
SHORT_PROMISING_PAIRS = 8
LONG_S = 15.0  # and so is one whose windows are long, as epochs are that are compared whole
SECOND_LOOK = 4  # times as long are the windows of a second look


class Trial:
    """Of `candidate` against `base`, the best so far."""

    def __init__(self, base: Settings, candidate: Settings, predicted: Range | None = None) -> None:
        self.base, self.candidate, self.predicted = base, candidate, predicted
        self.of_base: Range | None = None  # how many times as fast as the user's own the base is
        self.before: list[Fit] = []  # of earlier trials
        self.headroom = Headroom(base)  # by windows until now
        self.rates: dict[Settings, list[float]] = {base: [], candidate: []}
        self.outcome: Outcome | None = None
        self.why: str | None = None
        self.measured: Range | None = None  # over the user's own settings
        self.seconds = 0.0
        self.waits = True  # whether the loop waits for data with the candidate
        self.gain = 1.0  # over the base
        self.first_look: Range | None = None  # once there is a second one

    def window(self, epoch_batches: int | None, by_epochs: bool = False) -> Window:
        """The next window, in epochs of so many batches."""
        turn = self.turn
        out = left_out(turn, epoch_batches, by_epochs)
        return Window(turn, out, SECOND_LOOK if self.first_look is not None else 1, epoch_batches)

    @property
    def turn(self) -> Settings:
        """Whose turn it is."""
        base, candidate = self.rates.values()
        return self.base if len(base) <= len(candidate) else self.candidate

    @property
    def fit(self) -> Fit:
        return Fit(*self.rates.values())

    def add(self, window: Window) -> None:
        """A window has ended."""
        self.headroom.add(window)
        self.rates[window.settings].append(window.rate)
        if window.settings == self.candidate:
            self.waits = window.waits
        if self.turn == self.base:
            return  # each of the candidate's windows lies between two of the base's
        base, candidate = self.rates.values()
        if not candidate:
            return
        fit = self.fit
        sure, likely = (fit.factor(each, self.before) for each in (DECISION_LEVEL, REPORT_LEVEL))
        if fit.few and not (candidate[0] < HOPELESS * min(base) and likely.high < LEAST_GAIN):
            return
        self.gain = likely.mid
        self.measured = self._over_own(likely)
        if likely.high < LEAST_GAIN:
            self.outcome = "not faster"
        elif sure.low > LEAST_GAIN:
            self._prove()
        elif len(candidate) >= (SHORT_PAIRS if self._short(likely.mid) else MOST_PAIRS):
            self._judge(likely, sure, len(candidate))

    def _judge(self, likely: Range, sure: Range, pairs: int) -> None:
        """It has had its turns. A first candidate is proven if it is certainly faster, and probably
        by enough; a promising one goes on."""
        first = self.of_base is None
        most = PROMISING_PAIRS if first else SHORT_PROMISING_PAIRS
        if (first and likely.low > LEAST_GAIN and sure.low > 1.0) or self._better(likely.mid, sure):
            self._prove()
        elif likely.mid <= PROMISING or pairs >= most or self.seconds > PROMISING_S:
            self.outcome = "undecided"

    def _prove(self) -> None:
        """It is certainly faster. A gain beyond the headroom is measured a second time, in windows
        so long that batches made ahead do not matter."""
        most = self.headroom.factor
        assert self.measured is not None
        if self.first_look is not None or most is None or self.measured.mid <= LEAST_GAIN * most:
            self.outcome = "proven"
            return
        self.first_look, self.measured = self.measured, None
        self.rates = {self.base: [], self.candidate: []}
        self.why = (
            f"measured twice: at first it was {times(self.first_look.mid)}, more than the loop's "
            f"waiting accounts for ({times(most)})"
        )

    def _short(self, middle: float) -> bool:
        """Whether few windows are enough. A candidate with a predicted gain may only have had bad
        luck."""
        expected = self.predicted is not None and self.predicted.low > LEAST_GAIN
        no_gain = middle <= LEAST_GAIN and not expected
        return self.of_base is not None or no_gain or self.seconds > LONG_S

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
        self.outcome, self.why = outcome, why or self.why
