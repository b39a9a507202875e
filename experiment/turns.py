"""Runs both sides in turns: first their batches are compared, then both are timed."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil

from .change import Options
from .copies import Copies
from .differences import batches_in, first_difference, incomparable
from .ratio import factor_of, is_narrow
from .result import Difference, TryResult
from .running import START_S, Failed, Script, Side, Turn
from .scratch import Scratch

BEFORE, AFTER = "as it is", "with the change"
WINDOW_S, WINDOW_SHARE = 2.0, 1 / 40  # max length of a window, also as a share of the budget
MOST_BATCHES = 1_000_000  # of a window
WINDOWS = 4  # at least, in a script that ends early
STARTS_FACTOR = 3  # a trial with all starts lasts at most this many budgets
COMPARED_SHARE = 1 / 4  # max share of the budget for comparing one side's batches
STARTED_S, STARTED_FACTOR = 2.0, 1.2  # a start that is slower by both is noted


@dataclass
class Trial:
    """A trial of two copies of a project. Turns alternate (A B, B A, A B), so that drift and files
    in the page cache favour neither side."""

    script: Script
    copies: Copies
    options: Options
    scratch: Scratch
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self._sides: list[Side] = []
        self._pairs: list[list[float]] = []
        self._spent_s = self._latest = 0.0
        self._memory = [0, 0]
        self._window = self._most = MOST_BATCHES  # of a window
        self._starts = self._handed = 0  # and batches since the last one
        self._notes: list[str] = []
        self._first: list[Turn] = []

    def run(self) -> TryResult:
        began = time.monotonic()
        found = TryResult()
        try:
            self._start()
            self._latest = time.monotonic() + STARTS_FACTOR * self.options.budget_s
            found = self._judge(found)
            self._time()
            self._end()
            self._control(found.first_difference)
            found = replace(found, factor=factor_of(self._pairs, self._starts))
        except Failed as failure:
            found = replace(found, same_batches=None, error=f"{failure}")
        finally:
            self._end()
        return replace(
            found,
            memory_bytes=self._memory[1] - self._memory[0] if all(self._memory) else None,
            windows=len(self._pairs),
            seconds=time.monotonic() - began,
            notes=tuple(self._notes),
        )

    def _start(self) -> None:
        self.say("starting the script with the change and without")
        self._starts += 1
        self._handed = 0
        folders = [(BEFORE, self.copies.before), (AFTER, self.copies.after)]
        order = 1 if self._starts % 2 else -1
        for name, folder in folders[::order]:
            side = Side(name, self.script, folder, self.scratch)
            self._sides.append(side)
            if not side.hello:
                raise Failed(side.why_failed() or f"the script {name} iterates over no DataLoader")
            for module in side.hello["elsewhere"][:1]:
                raise Failed(
                    f"the script {name} imports {module} from {self.script.root}, not from its "
                    "copy, so that the change would not be seen: put the project on PYTHONPATH"
                )
        self._sides = self._sides[::order]

    def _judge(self, found: TryResult) -> TryResult:
        """Compare the first batches of both sides."""
        before, after = self._sides
        self._note_starts(before, after)
        self.say("comparing batches")
        options = self.options
        first = self._turn(before, options.batches, True, options.budget_s * COMPARED_SHARE)
        count = batches_in(first.events)
        second = self._turn(after, options.batches if first.ended else count, True)
        self._first = [first, second]
        compared = min(count, batches_in(second.events))
        if compared and first.seconds and second.seconds:
            self._set_window(max(first.seconds, second.seconds) / compared)
        else:
            self._window = self._most = max(1, compared // WINDOWS)
        found = replace(found, compared=compared, ended=first.ended and second.ended)
        if not compared:
            self._notes.append("no batch was handed over")
            return found
        ended = first.ended or second.ended
        difference = first_difference(first.events, second.events, ended)
        unknown = incomparable(first.events) if difference is None else None
        if unknown is not None:
            self._notes.append(unknown)
            return found
        return replace(found, same_batches=difference is None, first_difference=difference)

    def _note_starts(self, before: Side, after: Side) -> None:
        if not before.hello["seeded"]:
            self._notes.append("the script sets no seed: random streams began alike on both sides")
        times = before.started_s, after.started_s
        if max(times) > min(times) * STARTED_FACTOR and max(times) > min(times) + STARTED_S:
            self._notes.append(
                f"until the first batch is asked for, the script takes {times[0]:.1f} s, with the "
                f"change {times[1]:.1f} s"
            )

    def _turn(
        self, side: Side, batches: int, compare: bool = False, most_s: float = START_S
    ) -> Turn:
        """One turn of one side. Raises Failed if the script failed."""
        began = time.monotonic()
        turn = side.turn(batches, compare, most_s)
        self._spent_s += time.monotonic() - began
        if turn.ended and (why := side.why_failed()):
            raise Failed(why)
        return turn

    def _set_window(self, step_s: float) -> None:
        """Choose the batches of a window by the seconds of a step."""
        wanted = ceil(min(WINDOW_S, self.options.budget_s * WINDOW_SHARE) / max(step_s, 1e-6))
        if not self._pairs or not wanted / 2 <= self._window <= wanted * 2:
            self._window = min(max(1, wanted), self._most)

    def _time(self) -> None:
        """Time pairs of windows until the result is narrow enough. A script that ends is started
        again."""
        settle = True
        fresh = not self._first[0].ended
        while not self._done:
            if fresh:
                before = len(self._pairs)
                self._windows(settle)
                if self._done or (self._window == 1 and len(self._pairs) == before and not settle):
                    break
                settle = self._window > 1
                handed = self._handed // WINDOWS if self._handed else self._window // 2
                self._most = max(1, min(self._most, handed))
                self._window = min(self._window, self._most)
            self._end()
            self._start()
            fresh = True
        if factor_of(self._pairs, self._starts) is None:
            self._notes.append("too few batches were handed over to time them: raise --budget")

    @property
    def _done(self) -> bool:
        spent = self._spent_s > self.options.budget_s or time.monotonic() > self._latest
        return spent or is_narrow(factor_of(self._pairs, self._starts), len(self._pairs))

    def _windows(self, settle: bool) -> None:
        """Time pairs of windows until the result is narrow enough, or a script ends."""
        ahead = max(side.hello["ahead"] for side in self._sides)
        if settle and not self._took(min(ahead, 4 * self._window) + 1):
            return
        while not self._done and (seconds := self._took(self._window)):
            self._pairs.append(seconds)
            self.say(f"timing both in turns: {len(self._pairs)} windows")
            self._set_window(max(seconds) / self._window)

    def _took(self, batches: int) -> list[float]:
        """Seconds of both sides for so many batches; empty if a script ended."""
        order = -1 if len(self._pairs) % 2 else 1
        found: list[float] = []
        for side in self._sides[::order]:
            seconds = self._turn(side, batches).seconds
            if seconds is None:
                return []
            found.append(seconds)
        self._handed += batches
        return found[::order]

    def _end(self) -> None:
        for at, side in enumerate(self._sides):
            self._memory[at] = max(self._memory[at], side.memory_bytes)
            side.end()
        self._sides = []

    def _control(self, difference: Difference | None) -> None:
        """Run the unchanged script once more, to see whether its batches differ by themselves."""
        if difference is None:
            return
        with suppress(Failed):
            again = Side(BEFORE, self.script, self.copies.before, self.scratch)
            self._sides = [again]
            if not again.hello:
                return
            second = again.turn(difference.batch + 1, True).events
            found = first_difference(self._first[0].events, second, False)
            if found is not None:
                self._notes.append(
                    "without the change they differ from run to run, too, from batch "
                    f"{found.batch} on ({found.what}): set the seeds"
                )
