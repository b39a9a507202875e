"""Reading lanes while they are being written, without NumPy: each call gives the records that are
new. Of batches they tell what the loops of a live process do now: how much of a step is waiting,
and whether that can be judged."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...base.schema import BATCH, Schema
from .segment_file import (
    FORMAT_VERSION,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    batch_lanes,
    segment_number,
    segment_path,
    segments,
)

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

_FIELDS = [
    [field.name for field in BATCH.fields].index(name)
    for name in ("seq", "t_ns", "wait_ns", "epoch", "worker")
]


@dataclass
class LaneTail:
    """Follows the segments of one lane. A file that is no such lane gives nothing; a damaged one,
    nothing more.

    `at_most`: of more new records in a segment than this, only the latest are read. It then begins
    with the newest segment.
    """

    directory: Path
    name: str
    schema: Schema
    at_most: int | None = None
    given_up: str | None = None
    _number: int = -1  # of the segment being read
    _taken: int = 0  # records taken from it

    def new(self) -> list[tuple[float, ...]]:
        """The records committed since the last call, in order, each with all fields of the schema.
        Never raises."""
        found: list[tuple[float, ...]] = []
        while self.given_up is None:
            try:
                full, following = self._take(found), self._number + 1
            except FileNotFoundError:  # not made yet, or removed while later ones exist
                numbers = map(segment_number, segments(self.directory, self.name))
                later = [number for number in numbers if number > self._number]
                if self._number < 0 and self.at_most is not None:
                    later = later[-1:]
                full = bool(later)
                following = later[0] if later else -1
            except (OSError, ValueError, struct.error) as error:
                self.given_up = f"{self.directory}/{self.name}: {error}"
                break
            if not full:
                break
            self._number, self._taken = following, 0
        return found

    def _take(self, found: list[tuple[float, ...]]) -> bool:
        """Adds what is new in the present segment; True when the segment is full and read to its
        end."""
        size = self.schema.size
        with open(segment_path(self.directory, self.name, self._number), "rb", buffering=0) as file:
            # The count is read before the records it counts: what it covers is whole.
            header = file.read(HEADER.size)
            if len(header) < HEADER.size:
                return False
            *kind, capacity, first, committed, _ = HEADER.unpack(header)
            if kind != [MAGIC, FORMAT_VERSION, HEADER_BYTES, size] or not capacity:
                # its header is being written; or it is not such a lane, and never gives anything
                return False
            fresh = min(committed, capacity) - self._taken
            if self.at_most is not None and fresh > self.at_most:
                self._taken += fresh - self.at_most
                fresh = self.at_most
            if fresh > 0:
                file.seek(HEADER_BYTES + self._taken * size)
                data = file.read(fresh * size)
                for at in range(0, len(data) - size + 1, size):
                    record = struct.unpack_from(self.schema.format, data, at)
                    if record[0] != first + self._taken:
                        raise ValueError("records out of order")
                    found.append(record)
                    self._taken += 1
            return bool(self._taken >= capacity)


class Loop:
    """One lane of batches: what its loop did since the first `look`."""

    def __init__(self, directory: Path, lane: str, loader: int) -> None:
        self.loader = loader
        self._tail = LaneTail(directory, lane, BATCH, AT_MOST)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was read."""
        self.batches = self.wait_ns = self.took_ns = self.step_ns = self._steps = 0
        self.first_ns = self.last_ns = -1
        # seq, epoch, hand-over; whether it was the first batch of its epoch
        self._previous = -2, -1, -1, False

    def look(self) -> None:
        for record in self._tail.new():
            seq, t_ns, wait_ns, epoch, worker = (int(record[at]) for at in _FIELDS)
            if t_ns < 0 or wait_ns < 0:
                continue
            handed = t_ns + wait_ns
            self.batches += 1
            self.first_ns = handed if self.first_ns < 0 else self.first_ns
            self.last_ns = handed
            before, last_epoch, last_ns, alone = self._previous
            first = epoch != last_epoch
            # Without the first batch of an epoch, unless the loop takes one of each iterator.
            # Where no workers start, waiting for that is waiting.
            step_ns, steady = handed - last_ns, alone or not first
            if before == seq - 1 and wait_ns <= step_ns and (steady or worker < 0):
                self.wait_ns += wait_ns
                self.took_ns += step_ns
                self.step_ns += step_ns * steady
                self._steps += steady
            self._previous = seq, epoch, handed, first

    @property
    def step_mean_ns(self) -> float | None:
        """A step, on average; None before there are two batches of an epoch."""
        return self.step_ns / self._steps if self._steps else None

    @property
    def waiting_share(self) -> float:
        return self.wait_ns / self.took_ns if self.took_ns > 0 else 0.0

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

    def steady(self, eager: bool) -> list[Loop]:
        """The loops that can be judged, the one that waited longest first."""
        found = [loop for loop in self.loops.values() if loop.is_steady(eager)]
        return sorted(found, key=lambda loop: -loop.wait_ns)
