"""What a loop did over its whole time, in a bounded number of equal steps of time."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# More steps than any screen has columns; when they are used up, two become one.
BINS = 512
FIRST_STEP_NS = 500_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Course:
    """Sums for each step of time, `step_ns` wide, from `begin_ns` (the first with a batch) to the
    last with one.

    `lost_ns` is stall where it was measured, else wait; over `busy_ns`, the time of all steps, it
    is the stall share.
    """

    begin_ns: int
    step_ns: int
    batches: Floats
    samples: Floats
    lost_ns: Floats
    busy_ns: Floats


class History:
    """Adds up batches by the time at which they were handed over. `begin_ns` must not be later than
    any of them."""

    def __init__(self, begin_ns: int) -> None:
        self.begin_ns = begin_ns
        self.step_ns = FIRST_STEP_NS
        self._sums = np.zeros((4, BINS))  # of batches, samples, lost and busy time

    def add(self, batches: Any, compute: npt.NDArray[np.int64] | None) -> None:
        """Add batches, given as anything indexed by column name, with their compute times (-1:
        unknown)."""
        if not len(batches["t_ns"]):
            return
        wait = batches["wait_ns"].clip(0)
        stall = batches["stall_ns"]
        lost = np.where(stall >= 0, np.minimum(stall, wait), wait)
        busy = wait if compute is None else wait + compute.clip(0)
        handed = batches["t_ns"] + wait
        self._make_room(int(handed.max()))
        where = ((handed - self.begin_ns) // self.step_ns).clip(0, BINS - 1)
        values = np.ones(len(wait)), batches["samples"].clip(0), lost, busy
        for number, value in enumerate(values):
            self._sums[number] += np.bincount(where, weights=value, minlength=BINS)

    def course(self, batches: Any, compute: npt.NDArray[np.int64]) -> Course:
        """What was added, and these batches too, which stay apart: they may still change."""
        whole = deepcopy(self)
        whole.add(batches, compute)
        filled = np.flatnonzero(whole._sums[0])
        begin, end = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
        sums = (row[begin:end] for row in whole._sums)
        return Course(whole.begin_ns + begin * whole.step_ns, whole.step_ns, *sums)

    def _make_room(self, t_ns: int) -> None:
        while t_ns - self.begin_ns >= self.step_ns * BINS:
            self.step_ns *= 2
            halved = self._sums[:, 0::2] + self._sums[:, 1::2]
            self._sums = np.concatenate([halved, np.zeros_like(halved)], axis=1)
