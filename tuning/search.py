"""Which settings are tried next, and what was found. Each candidate is tried against the best
before it."""

from __future__ import annotations

from ..advisors.schema.gains import LEAST_GAIN
from .candidates import MOST, Candidate, neighbours
from .evidence.settings import Settings
from .factor import Spread
from .trial import Trial
from .window import Headroom

ENOUGH_S = 15.0  # of trying; after it no further candidate is begun
STEEP = 1.05  # what lies beside settings that gained less over those before them gains less still


class Search:
    """The trials of one loader so far, and the remaining candidates."""

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
        """The settings to keep."""
        return self.own if self.best is None else self.best.candidate

    def begin(self, now_ns: int) -> Trial:
        """The next candidate."""
        candidate, best = self.waiting.pop(0), self.best
        trial = Trial(self.found, candidate.settings, candidate.predicted)
        trial.of_base = None if best is None else best.measured
        trial.before, trial.headroom = self._spread, self._headroom
        trial.rates[trial.base] += self._last_base
        self._last_base = []
        self.trials.append(trial)
        self.began_ns = self.began_ns or now_ns
        return trial

    def ended(self, trial: Trial) -> None:
        """A trial that ends by itself ends with a window of the base, which is the first of the
        next trial."""
        self._spread = self._spread.with_(trial.fit)
        if trial.outcome in ("not faster", "undecided"):
            self._last_base = trial.rates[trial.base][-1:]
        elif self.best is trial and not trial.waits:
            self.waiting = []
        elif self.best is trial and trial.gain >= STEEP:
            near = neighbours(trial.candidate, trial.base, {self.own, *self._tried}, self.cores)
            self.waiting = [*near, *self.waiting]

    @property
    def _tried(self) -> set[Settings]:
        return {each.candidate for each in self.trials}

    def over(self, now_ns: int) -> bool:
        """Whether no other candidate is worth a trial: its best prediction must be above what was
        found."""
        best = self.best.measured if self.best is not None else None
        least = best.mid * LEAST_GAIN if best is not None else 0.0
        self.waiting = [
            each
            for each in self.waiting
            if each.settings not in self._tried
            and (each.predicted is None or each.predicted.high > least)
        ]
        late = now_ns - self.began_ns > ENOUGH_S * 1e9
        return not self.waiting or late or len(self.trials) >= MOST
