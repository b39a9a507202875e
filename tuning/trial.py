"""Is one setting faster than another? They take turns, and what differs between turns is the
measure of certainty.

Times are passed in. A window is some steps under one setting; windows of the base and of the
candidate take turns, so that a machine that grows slower or faster moves both. The interval comes
from how windows of the same setting differ: other programs that come and go make it wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from typing import Literal

import numpy as np

from ..advisors.schema.figures import times
from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.report_model import Range
from .settings import Settings
from .student import quantile
from .window import Headroom, Window, epochs_left_out, left_out

Outcome = Literal["proven", "not faster", "undecided", "failed", "not tried"]

# Windows are looked at again and again until they are certain of a gain: each look at this level.
# What is told is at the other, that of all ranges in reports, which is enough to leave a candidate:
# time is worth more than a small gain.
CERTAIN, TOLD = 0.99, 0.8
FEWEST_WINDOWS, MOST_PAIRS = 5, 6
# What promises as much goes on for longer: a tenth that windows which differ by a tenth are to show
# takes twenty pairs.
PROMISING, PROMISING_PAIRS, PROMISING_S = 1.05, 24, 25.0
HOPELESS = 0.9  # one window so far below both of the base's beside it is enough
LEAST_SPREAD = 0.03  # of windows, as logarithms: two of them may be as one by chance
# Against settings that are proven already, or where little is to be had, a trial is short. What is
# then as good is preferred where it costs less, and where it costs more, if it is better by this.
SHORT_PAIRS, BETTER = 3, 1.015
SHORT_PROMISING_PAIRS = 8
# How much earlier trials' windows of the same loader count for how windows differ, in windows:
# Smyth's moderated t.
EARLIER = 6.0
LONG_S = 15.0  # and so is one whose windows are long, as epochs are that are compared whole
# times as long are the windows in which a gain is looked at again that waiting does not account for
SECOND_LOOK = 4


@dataclass(frozen=True)
class Spread:
    """How windows of the same settings differ, by earlier trials: squares of logarithms, and
    degrees of freedom."""

    squares: float = 0.0
    freedom: int = 0

    def with_(self, base: Sequence[float], candidate: Sequence[float]) -> Spread:
        """And by this trial."""
        windows = _in_turns(base, candidate)
        if windows < FEWEST_WINDOWS:
            return self
        _, squares, freedom, _ = _least_squares(base, candidate, windows)
        return Spread(self.squares + squares, self.freedom + freedom)

    def moderated(self, squares: float, freedom: int) -> tuple[float, float]:
        """(variance, degrees of freedom) where this many squares come to what is known from
        before."""
        earlier = min(EARLIER, self.freedom)
        before = earlier * self.squares / self.freedom if self.freedom else 0.0
        return (squares + before) / (freedom + earlier), freedom + earlier


UNKNOWN = Spread()


def ratio(
    base: Sequence[float], candidate: Sequence[float], level: float, before: Spread = UNKNOWN
) -> Range | None:
    """The candidate's rate over the base's, within the range so certain; None where too few took
    turns. `base` begins, and may end too. `before`: how windows differed in earlier trials.

    By least squares: the logarithm of a rate is a level, a drift from window to window, and what
    the candidate adds. Its variance is moderated by that of earlier trials (Smyth 2004, "Linear
    models and empirical Bayes methods").
    """
    windows = _in_turns(base, candidate)
    return _fitted(base, candidate, windows, level, before) if windows >= FEWEST_WINDOWS else None


def hopeless(
    base: Sequence[float], candidate: Sequence[float], before: Spread = UNKNOWN
) -> Range | None:
    """As `ratio`, of a candidate that is so much slower that three windows say it, and no drift is
    asked for; None where they do not."""
    if len(base) < 2 or len(candidate) != 1 or candidate[0] >= HOPELESS * min(base):
        return None
    found = _fitted(base, candidate, 3, TOLD, before)
    return found if found.high < LEAST_GAIN else None


def _in_turns(base: Sequence[float], candidate: Sequence[float]) -> int:
    return min(2 * len(candidate) + 1, 2 * len(base))


def _fitted(
    base: Sequence[float], candidate: Sequence[float], windows: int, level: float, before: Spread
) -> Range:
    middle, squares, own, weight = _least_squares(base, candidate, windows)
    variance, freedom = before.moderated(squares, own)
    if windows < FEWEST_WINDOWS:
        variance = max(variance, LEAST_SPREAD**2)
    half = quantile(level, round(freedom)) * (variance * weight) ** 0.5
    return Range(exp(middle - half), exp(middle), exp(middle + half))


def _least_squares(
    base: Sequence[float], candidate: Sequence[float], windows: int
) -> tuple[float, float, int, float]:
    """(what the candidate adds, squares left, degrees of freedom, variance of the first over that
    of windows)."""
    turn = np.arange(windows)
    rates = [(candidate if number % 2 else base)[number // 2] for number in turn]
    drift = [turn] if windows >= FEWEST_WINDOWS else []
    causes = np.column_stack([turn % 2, np.ones(windows), *drift])
    found, *_ = np.linalg.lstsq(causes, np.log(rates), rcond=None)
    squares = float(((np.log(rates) - causes @ found) ** 2).sum())
    return (
        float(found[0]),
        squares,
        windows - causes.shape[1],
        float(np.linalg.inv(causes.T @ causes)[0, 0]),
    )


def product(one: Range, other: Range) -> Range:
    """Of two factors that were measured apart, their product."""
    mid = one.mid * other.mid
    low = exp(-hypot(log(one.mid / one.low), log(other.mid / other.low)))
    high = exp(hypot(log(one.high / one.mid), log(other.high / other.mid)))
    return Range(mid * low, mid, mid * high)


class Trial:
    """One candidate against the base, in turns: A B A B … A. The base is the best so far: `of_base`
    is its own factor over the user's settings, None where it is those."""

    def __init__(
        self,
        base: Settings,
        candidate: Settings,
        predicted: Range | None = None,
        of_base: Range | None = None,
        base_rates: Sequence[float] = (),
        before: Spread = UNKNOWN,
        headroom: Headroom | None = None,
    ) -> None:
        """`base_rates`: of windows of the base just before; `before`: how windows differed until
        then; `headroom`: by windows until then."""
        self.before = before
        self._headroom = headroom or Headroom(base)
        self.base, self.candidate, self.predicted, self.of_base = (
            base,
            candidate,
            predicted,
            of_base,
        )
        self.rates: dict[Settings, list[float]] = {base: [*base_rates], candidate: []}
        self.outcome: Outcome | None = None
        self.why: str | None = None
        self.measured: Range | None = None  # over the user's own settings
        self.seconds = 0.0
        self.waits = True  # with the candidate
        self.gain = 1.0  # over the base
        self.first_look: Range | None = (
            None  # where there is a second one: what the first found over the user's own
        )

    def window(self, epoch_batches: int | None, by_epochs: bool = False) -> Window:
        """The next, of the settings whose turn it is, where epochs have so many batches."""
        turn = self.turn
        out = epochs_left_out(turn) if by_epochs else left_out(turn, epoch_batches)
        return Window(turn, out, SECOND_LOOK if self.first_look is not None else 1, epoch_batches)

    @property
    def turn(self) -> Settings:
        """Whose turn it is."""
        return (
            self.base
            if len(self.rates[self.base]) <= len(self.rates[self.candidate])
            else self.candidate
        )

    def add(self, window: Window) -> None:
        """A window has ended."""
        self._headroom.add(window)
        self.rates[window.settings].append(window.rate)
        if window.settings == self.candidate:
            self.waits = window.waits
        base, candidate = self.rates[self.base], self.rates[self.candidate]
        if len(base) <= len(candidate):
            # the base's turn again: each of the candidate's windows lies between two of the base's
            return
        certain, told = (ratio(base, candidate, level, self.before) for level in (CERTAIN, TOLD))
        if certain is None or told is None:
            if (told := hopeless(base, candidate, self.before)) is not None:
                self._measured(told)
                self.outcome = "not faster"
            return
        self._measured(told)
        if certain.low > LEAST_GAIN:
            self._prove()
        elif told.high < LEAST_GAIN:
            self.outcome = "not faster"
        elif len(candidate) >= (SHORT_PAIRS if self._short(told.mid) else MOST_PAIRS):
            # Certain to be faster at all, and probably by more than what is worth it: of what is
            # first tried, that is enough in the end, and what is probable goes on for some more
            # turns.
            enough = self.of_base is None and told.low > LEAST_GAIN and certain.low > 1.0
            if enough or self._better(told.mid, certain):
                self._prove()
            elif (
                told.mid <= PROMISING
                or len(candidate) >= self._most_pairs
                or self.seconds > PROMISING_S
            ):
                self.outcome = "undecided"

    def _prove(self) -> None:
        """It is faster for certain. By more than the loop's waiting accounts for, only what a
        second look finds as well counts: windows of its own, so long that no batches made ahead of
        them matter."""
        most = self._headroom.factor
        if (
            self.first_look is not None
            or self.measured is None
            or most is None
            or self.measured.mid <= LEAST_GAIN * most
        ):
            self.outcome = "proven"
            return
        self.first_look = self.measured
        self.rates = {self.base: [], self.candidate: []}
        self.measured = None
        self.why = (
            f"at first it was {times(self.first_look.mid)}, more than the loop's waiting accounts "
            f"for ({times(most)}): it was looked at a second time"
        )

    @property
    def _most_pairs(self) -> int:
        return PROMISING_PAIRS if self.of_base is None else SHORT_PROMISING_PAIRS

    def _short(self, middle: float) -> bool:
        expected = (
            self.predicted is not None and self.predicted.low > LEAST_GAIN
        )  # so it may only have had bad luck
        return (
            self.of_base is not None
            or (middle <= LEAST_GAIN and not expected)
            or self.seconds > LONG_S
        )

    def _measured(self, over_base: Range) -> None:
        self.gain = over_base.mid
        self.measured = over_base if self.of_base is None else product(self.of_base, over_base)

    def _better(self, middle: float, certain: Range) -> bool:
        """Whether it is proven over the user's own settings at least, and probably better than the
        base."""
        if self.of_base is None or product(self.of_base, certain).low < LEAST_GAIN:
            return False
        cheaper = self.candidate.num_workers < self.base.num_workers
        return middle > (1.0 if cheaper else BETTER)

    def end(self, outcome: Outcome, why: str | None = None) -> None:
        """It cannot go on."""
        self.outcome, self.why = outcome, why or self.why
