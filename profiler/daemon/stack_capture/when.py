"""Whether a training process is steady and waits for its data, from the tail of its batch lanes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...base.schema import BATCH
from ..lane_tail import LaneTail

BATCHES = 20
STEADY_NS = 3_000_000_000
WAITING_SHARE = 0.1  # of a step; with less, loading as fast as can be would not be noticed
EAGER_BATCHES = 6
EAGER_NS = 1_000_000_000
# Whoever tries a loader for the first time stops it after some seconds: where a quarter of each
# step or more is waiting, and steps so long that reading stacks costs them little
# (benchmarks/stacks_cost.py), it is certain sooner. So many batches and so long, either of them.
EARLY = ((10, 500_000_000), (4, 1_000_000_000))
EARLY_SHARE = 0.25
EARLY_STEP_NS = 2_000_000
AT_MOST = 256  # records taken in a look: more would cost more than they tell

_LANE = re.compile(r"(batches(\d{1,9})x\d{1,9})-\d+\.seg")
_T, _WAIT, _EPOCH = (
    next(at for at, f in enumerate(BATCH.fields) if f.name == n)
    for n in ("t_ns", "wait_ns", "epoch")
)


class Loop:
    """One lane of batches: what its loop did since the first look."""

    def __init__(self, directory: Path, lane: str, loader: int) -> None:
        self.loader = loader
        self._tail = LaneTail(directory, lane, BATCH, AT_MOST)
        self.begin_anew()

    def begin_anew(self) -> None:
        """What was does not count any more."""
        self.batches = self.wait_ns = self.step_ns = self._steps = 0
        self.first_ns = self.last_ns = -1
        self._previous: tuple[int, int, int] | None = None  # seq, epoch, hand-over

    def look(self) -> None:
        for record in self._tail.new():
            seq, t_ns, wait_ns, epoch = (
                int(record[0]),
                int(record[_T]),
                int(record[_WAIT]),
                int(record[_EPOCH]),
            )
            if t_ns < 0 or wait_ns < 0:
                continue
            handed = t_ns + wait_ns
            self.batches += 1
            self.first_ns = handed if self.first_ns < 0 else self.first_ns
            self.last_ns = handed
            if self._previous is not None and self._previous[:2] == (seq - 1, epoch):
                # The first batch of an epoch is not looked at: its waiting is the start of the
                # workers.
                self.wait_ns += wait_ns
                self.step_ns += max(0, handed - self._previous[2])
                self._steps += 1
            self._previous = seq, epoch, handed

    @property
    def step_mean_ns(self) -> float | None:
        """A step, on average; None before there are two batches of an epoch."""
        return self.step_ns / self._steps if self._steps else None

    @property
    def waiting_share(self) -> float:
        return self.wait_ns / self.step_ns if self.step_ns > 0 else 0.0

    @property
    def slow_for_certain(self) -> bool:
        """Whether it need not be watched any longer to be called slow."""
        step = self.step_mean_ns
        if step is None or step < EARLY_STEP_NS or self.waiting_share < EARLY_SHARE:
            return False
        return any(self.lasts(*least) for least in EARLY)

    def lasts(self, batches: int, span_ns: int) -> bool:
        return self.batches >= batches and self.last_ns - self.first_ns >= span_ns


class Watcher:
    """The loops of one training process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.loops: dict[str, Loop] = {}

    def look(self) -> None:
        """Take in what the process recorded since the last look. Never raises."""
        try:
            names = os.listdir(self.directory)
        except OSError:
            return
        for name in names:
            match = _LANE.fullmatch(name)
            if match and match[1] not in self.loops:
                self.loops[match[1]] = Loop(self.directory, match[1], int(match[2]))
        for loop in self.loops.values():
            loop.look()

    def forget(self) -> None:
        """What follows counts, what was does not."""
        for loop in self.loops.values():
            loop.begin_anew()

    def steady(self, eager: bool = False) -> list[Loop]:
        """The loops under way for long enough to be judged, the one that waited longest first."""
        batches, span = (EAGER_BATCHES, EAGER_NS) if eager else (BATCHES, STEADY_NS)
        old = [
            loop
            for loop in self.loops.values()
            if loop.lasts(batches, span) or loop.slow_for_certain
        ]
        return sorted(old, key=lambda loop: -loop.wait_ns)
