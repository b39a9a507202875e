"""Which settings are tried next, and what was found by it: each candidate is held against the best
before it."""

from __future__ import annotations

from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.report_model import Range
from .candidates import MOST, Candidate, neighbours
from .factor import Spread
from .settings import Settings
from .trial import Trial
from .window import Headroom

ENOUGH_S = 15.0  # of trying; after it no further candidate is begun
STEEP = 1.05  # what lies beside settings that gained less over those before them gains less still


class Search:
    """The trials of one loader so far, and the candidates that are left."""

    def __init__(self, own: Settings) -> None:
        self.own, self.cores = own, 1
        self.waiting: list[Candidate] = []
        self.trials: list[Trial] = []
        self.began_ns = 0  # the first of them
        self._last_base: list[float] = []  # the rate of the base's window just before
        self._spread = Spread()
        self._headroom = Headroom(own)

    @property
    def best(self) -> Trial | None:
        """The last that was proven: each is tried against the best before it."""
        return next((each for each in reversed(self.trials) if each.outcome == "proven"), None)

    @property
    def found(self) -> Settings:
        """Of what was tried, what is to stay."""
        return self.own if self.best is None else self.best.candidate

    def begin(self, now_ns: int) -> Trial:
        """The next candidate."""
        candidate, best = self.waiting.pop(0), self.best
        over_own = best.measured if best is not None else None
        trial = Trial(
            self.found,
            candidate.settings,
            candidate.predicted,
            over_own,
            self._last_base,
            self._spread,
            self._headroom,
        )
        self._last_base = []
        self.trials.append(trial)
        self.began_ns = self.began_ns or now_ns
        return trial

    def ended(self, trial: Trial) -> None:
        """What ends by itself ends with a window of the base, on which the next one's windows
        follow."""
        self._spread = self._spread.with_(trial.fit)
        self._last_base = (
            trial.rates[trial.base][-1:] if trial.outcome in ("not faster", "undecided") else []
        )
        if self.best is trial:
            tried = {self.own, *(each.candidate for each in self.trials)}
            beside = (
                neighbours(trial.candidate, trial.base, tried, self.cores)
                if trial.gain >= STEEP
                else []
            )
            self.waiting = [*beside, *self.waiting] if trial.waits else []

    def over(self, now_ns: int) -> bool:
        """Whether no other candidate is worth a trial."""
        tried = {each.candidate for each in self.trials}
        self.waiting = [
            each
            for each in self.waiting
            if each.settings not in tried and self._may_win(each.predicted)
        ]
        return (
            not self.waiting or now_ns - self.began_ns > ENOUGH_S * 1e9 or len(self.trials) >= MOST
        )

    def _may_win(self, predicted: Range | None) -> bool:
        """Whether more is expected of it, at the best, than was found already."""
        best = self.best
        return (
            best is None
            or best.measured is None
            or predicted is None
            or predicted.high > best.measured.mid * LEAST_GAIN
        )
