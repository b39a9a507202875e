"""Tries the candidates one after the other, in windows that take turns with the best so far."""

from __future__ import annotations

import weakref
from math import inf
from typing import TYPE_CHECKING

from ..advisors.schema.gains import LEAST_GAIN
from .candidates import MOST, Candidate, neighbours
from .evidence.settings import Settings, why_refused
from .evidence.worker_context import forks
from .ranks import Leading
from .room import room_left, why_no_room, worker_bytes
from .switch.turns import Turns
from .trial import Trial
from .window import Window

if TYPE_CHECKING:
    from .tuner import Tuner

IDLE_NS = (
    3_000_000_000  # a loader that handed over nothing for so long does not keep others waiting
)
ENOUGH_S = 15.0  # of trying; after it no further candidate is begun
STEEP = 1.05  # what lies beside settings that gained less over those before them gains less still
MAY_BE_TRIED = "it may be tried"

_trying: weakref.ref[Tuner] | None = None  # one loader at a time: two would be measured together


class Trying:
    """The trials of a loader whose settings this rank decides on, and the remaining candidates."""

    def __init__(self, tuner: Tuner) -> None:
        self._tuner, self.own, self.cores = tuner, tuner.own, 1
        self.batch = 0, 0  # bytes and tensors of one
        self.waiting: list[Candidate] = []
        self.trials: list[Trial] = []
        self.trial: Trial | None = None  # that goes on
        self._trial_ns = self._began_ns = 0  # when this trial began, and the first one
        self._last_base: list[float] = []  # the rate of the base's window just before

    @property
    def best(self) -> Trial | None:
        """The last that was proven: each is tried against the best before it."""
        return next((each for each in reversed(self.trials) if each.outcome == "proven"), None)

    @property
    def found(self) -> Settings:
        """The settings to keep."""
        return self.own if self.best is None else self.best.candidate

    def handed(self, iterator: Turns, now: int) -> None:
        """A batch is about to reach the loop."""
        if self.trial is None:
            self._next(iterator, now)
            return
        self._go_on(iterator, self.trial, now)
        if self.trial is not None and self._spent(now):
            self.trial.seconds = (now - self._trial_ns) / 1e9
            self.trial.end("undecided", "the time for trying was used up")
            self.ended(more=False)

    @property
    def _ranks(self) -> Leading:
        assert isinstance(self._tuner.ranks, Leading)
        return self._tuner.ranks

    def _next(self, iterator: Turns, now: int) -> None:
        global _trying
        tuner, holder = self._tuner, _trying() if _trying is not None else None
        if not self.waiting:
            tuner.decide("no other settings are expected to be faster")
            return
        other = None if holder is tuner or (holder is not None and holder.decided) else holder
        if other is not None and now - other.last_ns < IDLE_NS:
            return
        _trying = weakref.ref(tuner)
        trial = self._begin()
        self._began_ns = self._began_ns or now
        if iterator.why_never is not None:
            trial.end("not tried", iterator.why_never)
            tuner.decide(f"not tuned: {iterator.why_never}")
            return
        why = self._why_not(iterator, trial.candidate)
        if why is not None or tuner.options.dry:
            trial.end("not tried", why or MAY_BE_TRIED)
            self._after()
            return
        self.trial, self._trial_ns = trial, now
        self._open_window(iterator, trial)

    def _begin(self) -> Trial:
        """The next candidate."""
        candidate, best = self.waiting.pop(0), self.best
        trial = Trial(self.found, candidate.settings, candidate.predicted)
        trial.of_base = None if best is None else best.measured
        trial.rates[trial.base] += self._last_base
        self._last_base = []
        self.trials.append(trial)
        return trial

    def _why_not(self, iterator: Turns, settings: Settings) -> str | None:
        tuner, loader = self._tuner, self._tuner.loader()
        if loader is None:
            return "the loader is gone"
        why = why_refused(loader, tuner.own, settings)
        if why is not None or (why := iterator.why_not(settings)) is not None:
            return why
        if not settings.num_workers:
            return None
        held = worker_bytes(iterator.pool.pids, forks(loader.multiprocessing_context))
        return why_no_room(settings, held, self.batch, room_left().shared_by(self._ranks.world))

    def _open_window(self, iterator: Turns, trial: Trial) -> None:
        tuner = self._tuner
        tuner.window = trial.window(tuner.epoch_batches)
        self._ranks.take_turn(tuner.clock(), trial.turn, (trial.base, trial.candidate))
        iterator.switch(trial.turn)

    def _go_on(self, iterator: Turns, trial: Trial, now: int) -> None:
        window = self._tuner.window
        assert window is not None
        if iterator.pool.settings != window.settings:  # what is under way comes first
            iterator.switch(window.settings)
        elif (why := self._ranks.failure) is not None:
            trial.end("failed", why)
            self.ended()
        elif (
            self._ranks.all_at_turn
            and window.handed(now, *timing(iterator))
            and (rates := self._ranks.rates) is not None
        ):
            window.slowest = min(rates, default=inf)
            self._add(iterator, window, now)

    def _add(self, iterator: Turns, window: Window, now: int) -> None:
        """A window has ended."""
        trial = self.trial
        assert trial is not None
        trial.seconds = (now - self._trial_ns) / 1e9
        trial.add(window)
        if self._tuner.asked(iterator):
            return
        if trial.outcome is not None:
            self.ended()
            iterator.release_unwanted()
            return
        self._tuner.write_again()
        if not self._spent(now):
            self._open_window(iterator, trial)

    def _spent(self, now: int) -> bool:
        return now - self._began_ns > self._tuner.options.budget_s * 1e9

    def ended(self, more: bool = True) -> None:
        """The trial is over. One that ends by itself ends with a window of the base, which is the
        first of the next trial."""
        trial, tuner = self.trial, self._tuner
        assert trial is not None
        if trial.outcome in ("not faster", "undecided"):
            self._last_base = trial.rates[trial.base][-1:]
        elif self.best is trial and not trial.waits:
            self.waiting = []
        elif self.best is trial and trial.gain >= STEEP:
            near = neighbours(trial.candidate, trial.base, {self.own, *self._tried}, self.cores)
            self.waiting = [*near, *self.waiting]
        self.trial = tuner.window = None
        tuner.chosen = self.found
        self._after(more)

    def _after(self, more: bool = True) -> None:
        if not more or self._over(self._tuner.clock()):
            self.conclude()
        else:
            self._tuner.write()

    @property
    def _tried(self) -> set[Settings]:
        return {each.candidate for each in self.trials}

    def _over(self, now: int) -> bool:
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
        late = now - self._began_ns > ENOUGH_S * 1e9
        return not self.waiting or late or len(self.trials) >= MOST

    def conclude(self) -> None:
        """Nothing more is tried."""
        tuner = self._tuner
        if tuner.options.dry:
            tried = (each for each in self.trials if each.why == MAY_BE_TRIED)
            may = "; ".join(tuner.words(each.candidate) for each in tried) or "nothing"
            tuner.decide(f"nothing was tried, as requested; may be tried: {may}")
        elif self.best is None:
            tuner.decide("nothing was certainly faster: the loader keeps its own settings")
        else:
            tuner.decide(f"{tuner.words(self.found)} is faster, and stays", self.found)


def timing(iterator: Turns) -> tuple[int, int]:
    """How long the loop waited for the last batch, and how long it took to make the batch again."""
    return iterator.waited_ns, iterator.spot_checks.took_ns
