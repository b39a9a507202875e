"""Who decides on a loader's settings: looks at the loop, tries what may be faster, keeps what is
proven, watches it.

All of it happens as batches are handed over, in the loop's own thread; predicting alone is done
beside it. When all is decided, a batch costs two comparisons here.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from ..profiler.base.clock import now_ns
from ..profiler.base.host import usable_cores
from ..profiler.record.iterate.watch import loader_place
from ..profiler.record.session.ranks import group_of_process, ranks
from ..profiler.record.transit.measure import batch_size_of
from ..profiler.store.run.tuning import asked
from .comparison import Unequal
from .driver import Driver
from .guards import Depends
from .look import Look, candidates_for
from .ranks import Following, Leading, meet
from .record import Record, trial_facts
from .room import Load, Room, room_left, why_no_room, worker_bytes
from .search import Search
from .settings import Settings, settings_of, why_refused
from .trial import Trial
from .turns import Turns
from .window import Window, epochs_left_out, left_out
from .worker_context import forks

# Epochs shorter than this are compared whole: starting workers is a part of them that may outweigh
# all else.
SHORT_EPOCH_S = 3.0
STEP_SHARE = 0.1  # of a known length of training
# After all is decided: below the user's own rate for so long, and it goes back.
LONG_NS, BELOW = 30_000_000_000, 0.97
WRITE_NS = 5_000_000_000
IDLE_NS = (
    3_000_000_000  # whoever tries and has handed over nothing for so long is not in anybody's way
)

COMPARED = 6  # batches that other settings make for a comparison first

_trying: weakref.ref[Tuner] | None = None  # one loader at a time: two would be measured together


class Tuner(Driver):
    """The driver of one loader's settings."""

    def __init__(
        self,
        loader: Any,
        budget_s: float,
        steps: int | None = None,
        dry: bool = False,
        any_order: bool = False,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        self._clock = clock
        self.loader = weakref.ref(loader)
        self.own = settings_of(loader)
        self.chosen = self.own
        self.search: Search | None = None  # once the candidates are known
        self.said = "the loop ended before anything was decided"
        self.decided = False
        super().__init__()
        self.compared = COMPARED
        self.steps = 0
        self._budget_s, self._dry, self._any_order = budget_s, dry, any_order
        self._most_steps = int(steps * STEP_SHARE) if steps else None
        self._record = Record()
        self._active: weakref.ref[Turns] | None = None
        self._last_ns = 0
        self.look = Look()
        self._written_ns = -WRITE_NS
        self._load: Load | None = None
        self._epoch_batches: int | None = None  # of the longest epoch that has ended
        self._going: tuple[Settings, int] | None = (
            None  # settings and batches of an iteration that has not ended
        )
        self._trial: Trial | None = None
        self._trial_ns = self._steps_then = 0
        self._window: Window | None = None
        self._below_since = 0
        self._leading: Leading | None = None  # of several ranks, the one that decides
        self._following: Following | None = None
        self._by_epochs = False
        self._wanted_ns = self._epoch_ns = 0

    @property
    def trials(self) -> list[Trial]:
        return self.search.trials if self.search is not None else []

    @property
    def place(self) -> tuple[Path, int] | None:
        """Where what was found is kept, once there is anything."""
        return self._record.place

    @property
    def best(self) -> Trial | None:
        return self.search.best if self.search is not None else None

    # As `Turns` calls it.

    def wanted(self, own: Settings) -> Settings:
        self.look.wait()
        self._wanted_ns = self._clock()
        if own != self.own:  # the user's code has changed them
            self.own = self.chosen = own
            self._trial = self._window = None
            self._decide("the loader's own settings were changed by the program")
        if self._following is not None and not self.decided:
            self._following.follow(self._clock())
            return self._following.settings or own
        return self._trial.turn if self._trial is not None else self.chosen

    def keeps(self, settings: Settings) -> bool:
        trial = self._trial
        kept = self._following.kept if self._following is not None else ()
        return settings in kept or (trial is not None and settings in (trial.base, trial.candidate))

    def begun(self, iterator: Turns) -> None:
        if self._going is not None:  # a loop that does not ask for more than there is
            self._epoch_over(*self._going, self._last_ns)
        self._active, self._epoch_ns = weakref.ref(iterator), self._wanted_ns
        window = self._following.window if self._following is not None else self._window
        if window is not None and not self._by_epochs:
            window.broken(left_out(window.settings, self._epoch_batches))
        elif window is not None:
            window.epoch_began()
        self._note(iterator, iterator.settings, 0)
        if self._clock() - self._written_ns >= WRITE_NS:
            self._write()

    def switched(self, iterator: Turns, settings: Settings) -> None:
        self._note(iterator, settings, iterator.given)
        if self._by_epochs and self._window is not None:
            self._window.left_out = max(
                1, self._window.left_out
            )  # an epoch of two settings says nothing

    def ended(self, iterator: Turns) -> None:
        if self._active is not None and self._active() is iterator:
            self._epoch_over(iterator.settings, iterator.given, self._clock())

    def _epoch_over(self, settings: Settings, batches: int, now: int) -> None:
        self._going = None
        whole = batches >= (self._epoch_batches or 1)
        self._epoch_batches = max(batches, self._epoch_batches or 0)
        window = self._window
        iterator = self._active() if self._active is not None else None
        if (
            not (whole and self._by_epochs)
            or window is None
            or settings != window.settings
            or iterator is None
        ):
            return
        if window.epoch(batches, (now - self._epoch_ns) / 1e9):
            if self.decided:
                self._watch(iterator, now)
            else:
                self._add(iterator, window, now)

    def _note(self, iterator: Turns, settings: Settings, batch: int) -> None:
        step = iterator.pool.step
        self._record.switched(step.epoch if step is not None else -1, batch, settings)

    def failed(self, settings: Settings, error: BaseException) -> None:
        name = "" if isinstance(error, Depends | Unequal) else f"{type(error).__name__}: "
        why = f"{name}{error}".splitlines()[0][:300]
        never = self._why_never()
        if never is not None and not self.decided:
            if self._trial is not None:
                self._trial.end("failed", why)
            self._give_up(never)
        elif self._trial is not None and settings == self._trial.candidate:
            self._trial.end("failed", why)
            self._ended()
        elif self._following is not None and not self.decided and settings != self.own:
            self._following.fail(self._clock(), why)
        else:
            self.chosen = self.own
            self._trial = self._window = None
            self._decide(f"tuning was given up: {why}")

    def _why_never(self) -> str | None:
        """Why no other settings may make the loader's batches."""
        iterator = self._active() if self._active is not None else None
        return iterator.why_never if iterator is not None else None

    def _give_up(self, why: str) -> None:
        self.chosen = self.own
        self._trial = self._window = None
        self._decide(f"not tuned: {why}")

    def handed(self, iterator: Turns, batch: Any) -> None:
        now = self._clock()
        self._last_ns = now
        self.steps += 1
        self._going = iterator.settings, iterator.given
        if self.decided:
            window = self._window if not self._by_epochs else None
            if window is not None and window.handed(
                now, _wait_ns(iterator), iterator.spot_checks.took_ns
            ):
                self._watch(iterator, now)
            if iterator.settings != self.chosen:
                iterator.switch(self.chosen)
            return
        if self._active is None or self._active() is not iterator:
            return  # of two loops over one loader, the later one is looked at
        if self._following is not None:
            self._follow(iterator, now)
        elif self._leading is not None and (why := self._leading.listen(now)) is not None:
            self._apart(why)
        elif self._trial is not None:
            self._go_on(iterator, now)
        elif self.search is not None:
            self._next(self.search, iterator, now)
        else:
            self._look(iterator, batch, now)

    # Looking.

    def _look(self, iterator: Turns, batch: Any, now: int) -> None:
        if self.look.predicting:
            if self.look.found is not None:
                self.search = Search(self.own, self._cores, self.look.found)
                if not self.look.found:
                    self._decide("no other settings are expected to be faster")
            return
        if not self.look.handed(now) or not self._met(now):
            return
        # Ranks take their turns within epochs, each at its own pace.
        short = (
            self._epoch_batches is not None
            and self._epoch_batches * self.look.step_s(now) < SHORT_EPOCH_S
        )
        self._by_epochs = short and self._leading is None
        size, tensors = batch_size_of(batch)
        self._load = Load(0.0, max(0, size), max(0, tensors))
        own, cores, any_order, nbytes = (
            self.own,
            self._cores,
            self._any_order,
            self._load.batch_bytes,
        )
        self.look.predict(lambda: candidates_for(self.loader(), own, cores, any_order, nbytes))

    @property
    def _cores(self) -> int:
        return self._leading.cores if self._leading is not None else usable_cores()

    def _met(self, now: int) -> bool:
        """Whether all ranks that decide together are here, and this one leads. Nobody waits:
        batches go on."""
        if self._leading is None:
            told = ranks(os.environ, group_of_process())
            if (told.world_size or 1) == 1:
                return True
            found = meet(self.loader(), told, self.look.began_ns, now)
            if isinstance(found, str):
                self._decide(f"not tuned: {found}")
            elif isinstance(found, Following):
                self._following = found
                self._write()
            else:
                self._leading = found
        return self._leading is not None and self._leading.met

    # Trying.

    def _next(self, search: Search, iterator: Turns, now: int) -> None:
        global _trying
        holder = _trying() if _trying is not None else None
        if (
            holder is not None
            and holder is not self
            and not holder.decided
            and now - holder._last_ns < IDLE_NS
        ):
            return
        _trying = weakref.ref(self)
        loader = self.loader()
        trial = search.begin(now)
        self._steps_then = self._steps_then or self.steps
        why = (
            "the loader is gone"
            if loader is None
            else why_refused(loader, self.own, trial.candidate, self._any_order)
        )
        why = (
            why or iterator.why_not(trial.candidate) or self._why_no_room(iterator, trial.candidate)
        )
        if iterator.why_never is not None:
            trial.end("not tried", iterator.why_never)
            self._give_up(iterator.why_never)
        elif why is not None or self._dry:
            trial.end("not tried", why or "it may be tried")
            self._after()
        if trial.outcome is not None:
            return
        self._trial, self._trial_ns = trial, now
        self._open_window(iterator)

    def _why_no_room(self, iterator: Turns, settings: Settings) -> str | None:
        if not settings.num_workers or self._load is None:
            return None
        held = worker_bytes(
            iterator.pool.pids, forks(getattr(self.loader(), "multiprocessing_context", None))
        )
        return why_no_room(
            settings, Load(held, self._load.batch_bytes, self._load.tensors), self._room()
        )

    def _room(self) -> Room:
        return (
            room_left()
            if self._leading is None
            else room_left().shared_by(self._leading.board.world)
        )

    def _open_window(self, iterator: Turns) -> None:
        assert self._trial is not None
        turn = self._trial.turn
        if self._by_epochs:
            self._window = self._trial.window(self._epoch_batches, by_epochs=True)
            return  # from the next epoch on
        self._window = self._trial.window(self._epoch_batches)
        if self._leading is not None:
            self._leading.take_turn(self._clock(), turn, (self._trial.base, self._trial.candidate))
        if iterator.settings != turn:
            iterator.switch(turn)

    def _go_on(self, iterator: Turns, now: int) -> None:
        trial, window = self._trial, self._window
        assert trial is not None and window is not None
        if self._by_epochs:
            window.within_epoch(now, _wait_ns(iterator))
            if (
                iterator.settings != window.settings != self.own
            ):  # no epoch begins with what was not compared yet
                iterator.switch(window.settings)
            if self._spent(now):
                self._out_of_budget(now)
            return
        if iterator.pool.settings != window.settings:
            if iterator.settings != window.settings:
                iterator.switch(window.settings)
            if self._spent(now):
                self._out_of_budget(now)
            return  # what was under way comes first
        if self._leading is not None and (why := self._leading.failure) is not None:
            trial.end("failed", why)
            self._ended()
            return
        if not self._handed_to_all(iterator, window, now):
            if self._spent(now):
                self._out_of_budget(now)
            return
        self._add(iterator, window, now)

    def _add(self, iterator: Turns, window: Window, now: int) -> None:
        """A window has ended."""
        trial = self._trial
        assert trial is not None
        trial.seconds = (now - self._trial_ns) / 1e9
        trial.add(window)
        if self._asked(iterator):
            return
        self._write()
        if trial.outcome is None and self._spent(now):
            self._out_of_budget(now)
        elif trial.outcome is None:
            self._open_window(iterator)
        else:
            self._ended()
            iterator.release_unwanted()

    def _handed_to_all(self, iterator: Turns, window: Window, now: int) -> bool:
        """Whether the window is over, in all ranks; the slowest one's rate is what counts."""
        if self._leading is not None and not self._leading.all_at_turn:
            return False
        over = window.handed(now, _wait_ns(iterator), iterator.spot_checks.took_ns)
        if self._leading is None:
            return over
        if not over or self._leading.rates is None:
            return False
        window.slowest = min(self._leading.rates)
        return True

    def _spent(self, now: int) -> bool:
        over = self.search is not None and now - self.search.began_ns > self._budget_s * 1e9
        steps = self._most_steps is not None and self.steps - self._steps_then > self._most_steps
        return over or steps

    def _out_of_budget(self, now: int) -> None:
        assert self._trial is not None
        self._trial.seconds = (now - self._trial_ns) / 1e9
        self._trial.end("undecided", "the time for trying was used up")
        self._ended(more=False)

    def _ended(self, more: bool = True) -> None:
        """A trial is over."""
        assert self._trial is not None and self.search is not None
        self.search.ended(self._trial)
        self._trial = self._window = None
        self.chosen = self.search.found
        self._after(more)

    def _after(self, more: bool = True) -> None:
        assert self.search is not None
        if not more or self.search.over(self._clock()):
            self._conclude()
        else:
            self._write()

    def _conclude(self) -> None:
        best = self.best
        if self._dry:
            allowed = [
                each.candidate.told_from(self.own)
                for each in self.trials
                if each.why == "it may be tried"
            ]
            self._decide(
                f"nothing was tried, as asked; may be tried: {'; '.join(allowed) or 'nothing'}"
            )
        elif best is None:
            self.chosen = self.own
            self._decide(
                "nothing that was tried is certain to be faster: the loader keeps its own settings"
            )
        else:
            self._stay()
            self._decide(f"{self._words(best)} is faster, and stays")

    def _stay(self) -> None:
        """What was chosen is watched from here on."""
        out = epochs_left_out(self.chosen) if self._by_epochs else left_out(self.chosen, None)
        self._window = Window(self.chosen, out)

    def _words(self, best: Trial) -> str:
        return best.candidate.told_from(self.own)

    def _decide(self, said: str) -> None:
        self.decided, self.said = True, said
        if self.search is not None:
            self.search.waiting = []
        if self._leading is not None:
            self._leading.end(
                self._clock(), self.chosen, said, [trial_facts(each) for each in self.trials]
            )
        self._write()

    def _asked(self, iterator: Turns) -> bool:
        """Whether somebody at a dashboard has put an end to it, or to what was found."""
        place = loader_place(self.loader())
        wish = asked(*place) if place is not None else None
        if wish is None or (self.decided and wish != "back"):
            return False
        trial, self._trial, self._window = self._trial, None, None
        if trial is not None:
            trial.end(trial.outcome or "undecided", "ended by hand")
        best = self.best
        if wish == "back":
            self.chosen = self.own
            self._decide("put back, as asked")
        elif wish == "keep" and (kept := trial or best) is not None:
            self.chosen = kept.candidate
            self._stay()
            self._decide(f"{self._words(kept)} was kept, as asked")
        else:
            self._conclude()
        iterator.release_unwanted()
        return True

    # Together with other ranks.

    def _follow(self, iterator: Turns, now: int) -> None:
        told = self._following
        assert told is not None
        turn, why = told.turn, told.follow(now)
        if told.turn != turn:
            iterator.release_unwanted()
        settings = told.settings or self.own
        if told.said is not None:
            self._as_told(told.said, settings)
        elif why is not None:
            self._apart(why)
        elif iterator.settings != settings:
            iterator.switch(settings)
        elif iterator.pool.settings == settings:
            told.handed(now, _wait_ns(iterator), iterator.spot_checks.took_ns, self._epoch_batches)

    def _as_told(self, said: str, settings: Settings) -> None:
        self.chosen = settings
        self._window = Window(settings, 0) if settings != self.own else None
        self._decide(said)

    def _apart(self, why: str) -> None:
        """The ranks do not go on together: each has its own settings."""
        if self._trial is not None:
            self._trial.end("undecided", why)
        self._trial = self._window = None
        self.chosen = self.own
        if self._following is not None:
            self._following.leave(self._clock(), why)
        self._decide(why if self.trials or self._following is not None else f"not tuned: {why}")

    @property
    def _own_rates(self) -> list[float]:
        return [rate for trial in self.trials for rate in trial.rates.get(self.own, ())]

    # Afterwards.

    def _watch(self, iterator: Turns, now: int) -> None:
        assert self._window is not None
        if self._asked(iterator):
            return
        told = self._following
        if told is not None:
            self._window = Window(self.chosen, 0)
            told.follow(now)
            if (settings := told.settings or self.own) != self.chosen:
                self._as_told(told.said or self.said, settings)
            return
        slow = self._window.rate < BELOW * median(self._own_rates)
        self._below_since = (self._below_since or now) if slow else 0
        self._window = Window(self.chosen, 0)
        if slow and now - self._below_since >= LONG_NS:
            self._window = None
            self.chosen = self.own
            iterator.switch(self.own)
            self._decide(
                "the loop became slower than with the loader's own settings: they are back"
            )

    def _write(self) -> None:
        self._written_ns = self._clock()
        trials = [trial_facts(each) for each in self.trials]
        left = self.search.waiting if self.search is not None else []
        waiting = [trial_facts(Trial(self.chosen, each.settings, each.predicted)) for each in left]
        follows = None
        if self._following is not None:
            trials, follows = self._following.trials, 0
        self._record.write(
            self.loader(), self.own, self.chosen, self.decided, self.said, trials, follows, waiting
        )


def _wait_ns(iterator: Turns) -> int | None:
    """How long the loop waited for the batch handed over just now; None where that is not known."""
    step = iterator.pool.step
    return step.last_wait_ns() if step is not None else None
