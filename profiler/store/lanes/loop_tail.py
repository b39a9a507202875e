"""What the loops of a live process do now, from the newest records of their batches: how much of
a step is waiting, and whether they can be judged."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...base.schema import BATCH
from .lane_tail import LaneTail
from .segment_file import batch_lanes

WAITING_SHARE = 0.1  # of a step; with less, faster loading would not be noticed
S = 1_000_000_000
# (batches, time, share of waiting, length of a step): a loop that has them all is steady. A first
# try of a loader is stopped after some seconds, so a loop that waits for a quarter of each step is
# judged sooner, if reading stacks costs its steps little (benchmarks/stacks_cost.py).
STEADY = (
    (20, 3 * S, 0.0, 0),
    (10, S // 2, 0.25, 2_000_000),
    (4, S, 0.25, 2_000_000),
)
EAGER = ((6, S, 0.0, 0), *STEADY)
AT_MOST = 256  # records read at a time

_NAMES = [field.name for field in BATCH.fields]
_FIELDS = [_NAMES.index(name) for name in ("seq", "t_ns", "wait_ns", "epoch")]


class Loop:
    """One lane of batches: what its loop did since the first `look`."""

    def __init__(self, directory: Path, lane: str, loader: int) -> None:
        self.loader = loader
        self._tail = LaneTail(directory, lane, BATCH, AT_MOST)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was read."""
        self.batches = self.wait_ns = self.step_ns = self._steps = 0
        self.first_ns = self.last_ns = -1
        self._previous: tuple[int, int, int] | None = None  # seq, epoch, hand-over

    def look(self) -> None:
        for record in self._tail.new():
            seq, t_ns, wait_ns, epoch = (int(record[at]) for at in _FIELDS)
            if t_ns < 0 or wait_ns < 0:
                continue
            handed = t_ns + wait_ns
            self.batches += 1
            self.first_ns = handed if self.first_ns < 0 else self.first_ns
            self.last_ns = handed
            if self._previous is not None and self._previous[:2] == (seq - 1, epoch):
                # Without the first batch of an epoch, which waits for the workers to start.
                step_ns = handed - self._previous[2]
                if wait_ns <= step_ns:
                    self.wait_ns += wait_ns
                    self.step_ns += step_ns
                    self._steps += 1
            self._previous = seq, epoch, handed

    @property
    def step_mean_ns(self) -> float | None:
        """A step, on average; None before there are two batches of an epoch."""
        return self.step_ns / self._steps if self._steps else None

    @property
    def waiting_share(self) -> float:
        return self.wait_ns / self.step_ns if self.step_ns > 0 else 0.0

    def is_steady(self, eager: bool) -> bool:
        span_ns, step_ns = self.last_ns - self.first_ns, self.step_mean_ns or 0.0
        return any(
            self.batches >= batches
            and span_ns >= least_ns
            and self.waiting_share >= share
            and step_ns >= least_step_ns
            for batches, least_ns, share, least_step_ns in (EAGER if eager else STEADY)
        )


class Watcher:
    """The loops of one training process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.loops: dict[str, Loop] = {}

    def look(self) -> None:
        """Read what the process recorded since the last call. Never raises."""
        with suppress(OSError):
            for loader, lane in batch_lanes(os.listdir(self.directory)):
                if lane not in self.loops:
                    self.loops[lane] = Loop(self.directory, lane, loader)
        for loop in self.loops.values():
            loop.look()

    def forget(self) -> None:
        """Count only what follows."""
        for loop in self.loops.values():
            loop.begin_anew()

    def steady(self, eager: bool = False) -> list[Loop]:
        """The loops that can be judged, the one that waited longest first."""
        found = [loop for loop in self.loops.values() if loop.is_steady(eager)]
        return sorted(found, key=lambda loop: -loop.wait_ns)
