"""Decides on a loader's settings: looks at the loop, tries what may be faster, keeps what is
proven, and watches it.

This happens as batches are handed over, in the loop's thread. Once all is decided, it costs a batch
two comparisons.
"""

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from msgspec.structs import asdict

from ..profiler.base.clock import now_ns
from ..profiler.record.iterate.watch import loader_place
from ..profiler.record.session.ranks import group_of_process, ranks
from ..profiler.record.transit.measure import batch_size_of
from ..profiler.store.run.tuning import asked, changed_words
from .candidates import candidates_for
from .evidence.guards import Depends
from .evidence.settings import Settings, settings_of
from .ranks import Following, Leading, meet
from .record import Record, as_tried
from .switch.driver import Driver
from .switch.turns import Turns
from .trial import Trial
from .trying import Trying, timing
from .window import Window, left_out

LOOK_BATCHES, LOOK_S = 60, 2.0  # before anything is predicted
# Of shorter epochs, starting workers is a part that may outweigh all else, and that turns within an
# epoch do not show.
SHORT_EPOCH_S = 3.0
# After all is decided: below the user's own rate for so long, and it goes back.
LONG_NS, BELOW = 30_000_000_000, 0.97
REST_NS = 2_000_000_000  # between two windows in which what was chosen is watched
WRITE_NS = 2_000_000_000
BUDGET_S = 60.0


@dataclass(frozen=True)
class Options:
    """How to tune; see `tune.tune`."""

    budget_s: float = BUDGET_S
    dry: bool = False
    any_random: bool = False


class Tuner(Driver):
    """The driver of one loader's settings."""

    compared = 6  # batches that other settings make for a comparison first

    def __init__(
        self, loader: Any, options: Options, name: str = "", clock: Callable[[], int] = now_ns
    ) -> None:
        super().__init__()
        self.options, self.name, self.clock = options, name, clock
        self.loader = weakref.ref(loader)
        self.own = self.chosen = settings_of(loader)
        self.said = "the loop ended before anything was decided"
        self.decided = False
        self.looking, self.trying = True, Trying(self)
        self.trials = self.trying.trials
        self.ranks: Leading | Following | None = None  # once they are known
        self.window: Window | None = None  # of a trial, or of what is watched
        self.record = Record()
        self.steps = self.last_ns = 0
        self.epoch_batches: int | None = None  # of the longest epoch that has ended
        self._given = 0  # batches of an iteration that has not ended
        self._active: Callable[[], Turns | None] = lambda: None
        self._began_ns = self._below_since = self._rest_until = 0
        self._written_ns = -WRITE_NS

    @property
    def following(self) -> Following | None:
        return self.ranks if isinstance(self.ranks, Following) else None

    @property
    def settled(self) -> bool:
        return self.decided and self.chosen == self.own and self.following is None

    # As the iterator calls it.

    def wanted(self, own: Settings) -> Settings:
        if own != self.own:
            self.own = own
            self.decide("the loader's own settings were changed by the program")
        following = self.following
        if following is not None and not self.decided:
            following.follow(self.clock())
            return following.settings or own
        trial = self.trying.trial
        return trial.turn if trial is not None else self.chosen

    def keeps(self, settings: Settings) -> bool:
        following, trial = self.following, self.trying.trial
        kept = following.leader.kept if following is not None else ()
        return settings in kept or (trial is not None and settings in (trial.base, trial.candidate))

    def begun(self, iterator: Turns) -> None:
        self._epoch_over(self._given)  # of a loop that does not ask for more than there is
        self._active = weakref.ref(iterator)
        following = self.following
        window = self.window if following is None else following.window
        if window is not None:
            window.broken(left_out(window.settings, self.epoch_batches))
        self._note(iterator, iterator.settings, 0)
        self.write_again()

    def switched(self, iterator: Turns, settings: Settings) -> None:
        self._note(iterator, settings, iterator.given)
        if self.decided:
            self.write()

    def _note(self, iterator: Turns, settings: Settings, batch: int) -> None:
        step = iterator.pool.step
        self.record.switched(step.epoch if step is not None else -1, batch, settings)

    def ended(self, iterator: Turns) -> None:
        if self._active() is iterator:
            self._epoch_over(iterator.given)

    def _epoch_over(self, batches: int) -> None:
        self._given = 0
        if batches:
            self.epoch_batches = max(batches, self.epoch_batches or 0)

    def failed(self, settings: Settings, error: BaseException) -> None:
        name = "" if isinstance(error, Depends) else f"{type(error).__name__}: "
        why = f"{name}{error}".splitlines()[0][:300]
        iterator, trial = self._active(), self.trying.trial
        never = iterator.why_never if iterator is not None else None
        if never is not None and not self.decided:
            if trial is not None:
                trial.end("failed", why)
            self.decide(f"not tuned: {never}")
        elif trial is not None and settings == trial.candidate:
            trial.end("failed", why)
            self.trying.ended()
        elif (part := self.following) is not None and not self.decided and settings != self.own:
            part.fail(self.clock(), why)
        else:
            self.decide(f"tuning was given up: {why}")

    def handed(self, iterator: Turns, batch: Any) -> None:
        now = self.last_ns = self.clock()
        self.steps += 1
        settings = iterator.settings
        self._given = iterator.given
        if self.decided:
            window = self.window if now >= self._rest_until else None
            if window is not None and window.handed(now, *timing(iterator)):
                self._watch(iterator, window, now)
                self._rest_until = now + REST_NS
            if settings is not self.chosen and settings != self.chosen:
                iterator.switch(self.chosen)
        elif self._active() is not iterator:
            return  # of two loops over one loader, the later one is looked at
        elif isinstance(self.ranks, Following):
            self._follow(self.ranks, iterator, now)
        elif self.ranks is not None and (why := self.ranks.listen(now)) is not None:
            self._leave_ranks(why, now)
        elif self.looking:
            self._look(batch, now)
        else:
            self.trying.handed(iterator, now)

    # Looking.

    def _look(self, batch: Any, now: int) -> None:
        self._began_ns = self._began_ns or now
        seconds = (now - self._began_ns) / 1e9
        if seconds < LOOK_S or self.steps < LOOK_BATCHES or (leading := self._met(now)) is None:
            return
        self.looking = False
        if 0 < (self.epoch_batches or 0) * seconds / self.steps < SHORT_EPOCH_S:
            self.decide(f"not tuned: its epochs take less than {SHORT_EPOCH_S:.0f} seconds")
            return
        nbytes, tensors = (max(0, each) for each in batch_size_of(batch))
        self.trying.batch = nbytes, tensors
        self.trying.cores = leading.cores
        self.trying.waiting = candidates_for(self.loader(), self.own, leading.cores)

    def _met(self, now: int) -> Leading | None:
        """The leading rank's part, once all ranks are here and this one leads. Nobody waits:
        batches go on."""
        if self.ranks is None:
            told = ranks(os.environ, group_of_process())
            found = meet(self.loader(), told, self._began_ns, now)
            if isinstance(found, str):
                self.decide(f"not tuned: {found}")
                return None
            self.ranks = found
            if isinstance(found, Following):
                self.write()
        return self.ranks if isinstance(self.ranks, Leading) and self.ranks.met else None

    # Deciding.

    def decide(self, said: str, chosen: Settings | None = None) -> None:
        """Try nothing more. The chosen settings stay and are watched; None stands for the loader's
        own."""
        self.decided, self.said, self.chosen = True, said, chosen or self.own
        self.window = None
        if self.chosen != self.own:
            self.window = Window(self.chosen, left_out(self.chosen, None))
        self.trying.trial, self.trying.waiting = None, []
        if isinstance(self.ranks, Leading):
            trials = tuple(map(as_tried, self.trials))
            self.ranks.take_turn(
                self.clock(), self.chosen, (self.chosen,), said=said, trials=trials
            )
        self.write()

    def words(self, settings: Settings) -> str:
        return changed_words(self.own.arguments(), settings.arguments())

    def asked(self, iterator: Turns) -> bool:
        """Whether a command from a dashboard has ended trying, or what was found."""
        place = loader_place(self.loader())
        command = asked(*place) if place is not None else None
        if command is None or (self.decided and command != "back"):
            return False
        trial = self.trying.trial
        if trial is not None:
            trial.end(trial.outcome or "undecided", "ended by hand")
        kept = trial or self.trying.best
        if command == "back":
            self.decide("put back, as requested")
        elif command == "keep" and kept is not None:
            self.decide(f"{self.words(kept.candidate)} was kept, as requested", kept.candidate)
        else:
            self.trying.conclude()
        iterator.release_unwanted()
        return True

    def _watch(self, iterator: Turns, window: Window, now: int) -> None:
        """A window of the chosen settings has ended."""
        if self.asked(iterator):
            return
        self.window = Window(self.chosen, 0)
        if isinstance(self.ranks, Following):
            self.ranks.follow(now)
            settings = self.ranks.settings or self.own
            if settings != self.chosen:
                self.decide(self.ranks.leader.said or self.said, settings)
            return
        own_rates = (rate for trial in self.trials for rate in trial.rates.get(self.own, ()))
        slow = window.rate < BELOW * median(own_rates)
        self._below_since = (self._below_since or now) if slow else 0
        if slow and now - self._below_since >= LONG_NS:
            iterator.switch(self.own)
            self.decide(
                "the loop became slower than with the loader's own settings: these are back"
            )

    def write_again(self) -> None:
        """Unless it was written a moment ago."""
        if self.clock() - self._written_ns >= WRITE_NS:
            self.write()

    def write(self) -> None:
        self._written_ns = self.clock()
        following = self.following
        waiting = (
            Trial(self.chosen, each.settings, each.predicted) for each in self.trying.waiting
        )
        self.record.write(
            self.loader(),
            trials=tuple(map(as_tried, self.trials))
            if following is None
            else following.leader.trials,
            waiting=tuple(map(as_tried, waiting)),
            own=asdict(self.own),
            chosen=asdict(self.chosen),
            decided=self.decided,
            said=self.said,
            follows=None if following is None else 0,
        )

    # Together with other ranks.

    def _follow(self, ranks: Following, iterator: Turns, now: int) -> None:
        turn, why = ranks.turn, ranks.follow(now)
        if ranks.turn != turn:
            iterator.release_unwanted()
        settings = ranks.settings or self.own
        if ranks.leader.said is not None:
            self.decide(ranks.leader.said, settings)
        elif why is not None:
            self._leave_ranks(why, now)
        elif iterator.settings != settings:
            iterator.switch(settings)
        elif iterator.pool.settings == settings:
            ranks.handed(now, *timing(iterator), self.epoch_batches)

    def _leave_ranks(self, why: str, now: int) -> None:
        """The ranks do not go on together: each uses its own settings."""
        if self.trying.trial is not None:
            self.trying.trial.end("undecided", why)
        following = self.following
        if following is not None:
            following.tell(now, left=why)
        self.decide(why if self.trials or following is not None else f"not tuned: {why}")
