"""A window of a trial: some steps under one setting, and what the loop waited for in them. Times
are passed in."""

from dataclasses import dataclass, field
from math import inf, isnan, nan

import numpy as np

from ..advisors.schema.gains import LEAST_GAIN
from ..profiler.base.arrays import Floats
from .evidence.settings import Settings

WINDOW_S, WINDOW_STEPS = 0.5, 8
# A pause is what the program does now and then, an evaluation or a checkpoint: the loop's own work
# takes so many times as long as steps do, and in no more than one step of twenty.
PAUSE, ORDINARY = 20.0, 0.95
HELD = 0.02  # of a window: held up by tuning for longer, it is broken


@dataclass
class Window:
    """Floats under one setting, without the first ones.

    Workers that wait alike deliver a round of batches at once, so a window is whole rounds. Long
    waiting always counts; long work of the loop does not.
    """

    settings: Settings
    left_out: int
    epoch_batches: int | None = None
    steps_s: list[float] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)  # the loop's own work in each; nan: not known
    slowest: float = inf  # the rate of the slowest of other ranks: they train in step
    _seconds: float = 0.0
    _last_ns: int = -1

    def broken(self, left_out: int) -> None:
        """An iteration ended or began: the next step has no predecessor."""
        self.left_out, self._last_ns = left_out, -1

    def handed(self, t_ns: int, wait_ns: int | None, held_ns: int = 0) -> bool:
        """Count a batch that the loop has waited for so long; True if there are enough. `held_ns`:
        how long tuning held it up while workers went on."""
        if held_ns / 1e9 > HELD * max(WINDOW_S, self._seconds):
            self.broken(left_out(self.settings, self.epoch_batches))
        if self.left_out > 0:
            self.left_out -= 1
            return False
        if self._last_ns >= 0:
            step_s = (t_ns - self._last_ns - held_ns) / 1e9
            self.steps_s.append(step_s)
            self.own_s.append(nan if wait_ns is None else max(0.0, step_s - wait_ns / 1e9))
            self._seconds += step_s
        self._last_ns = t_ns
        steps = len(self.steps_s)
        whole = steps % max(1, self.settings.num_workers) == 0
        return whole and steps >= WINDOW_STEPS and self._seconds >= WINDOW_S

    def _ordinary(self) -> tuple[Floats, Floats]:
        """The steps that count, and the loop's own work in each: without pauses, and without what
        workers made ahead during one. If waiting is not known, no step is a pause."""
        steps, own = np.asarray(self.steps_s), np.asarray(self.own_s)
        least = np.argsort(own)[: max(1, int(ORDINARY * len(own)))]
        if not np.isfinite(own).all():
            return steps, own
        pauses = own > PAUSE * steps[least].mean() if len(own) else own > 0
        kept = ~pauses
        for at in np.flatnonzero(pauses):
            kept[at : at + 1 + self.settings.ahead] = False
        kept = kept if kept.any() else ~pauses
        return steps[kept], own[kept]

    @property
    def times(self) -> tuple[float, float | None]:
        """(seconds of the steps that count, those of the loop's own work in them)."""
        steps, own = (float(each.sum()) for each in self._ordinary())
        return steps, None if isnan(own) else own

    @property
    def waits(self) -> bool:
        """Whether the loop waits enough to be worth a change; True if that is not known."""
        seconds, own = self.times
        return own is None or seconds > LEAST_GAIN * own

    @property
    def rate(self) -> float:
        """Batches a second."""
        steps, _ = self._ordinary()
        return min(self.slowest, len(steps) / max(1e-9, float(steps.sum())))


def left_out(settings: Settings, epoch_batches: int | None) -> int:
    """How many batches to leave out at the beginning of a window: made ahead before it, or by new
    workers."""
    ahead = 2 + settings.ahead
    return ahead if epoch_batches is None else min(ahead, max(1, epoch_batches // 4))
