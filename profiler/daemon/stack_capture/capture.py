"""One burst of stack samples, from several recordings at a time.

py-spy runs as the sampler's child, one for main and one for each of a few workers (workers of a
loader are alike). A single one with `--subprocesses` would cost 1.5 times as much, because it
searches /proc for new children ten times a second (1.0 ms instead of 0.6 ms of CPU a reading of a
process with three Python threads). A burst has two parts: stacks with idle threads, and then,
shorter, who holds the GIL. Nothing here waits: each tick handles what is new.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from ...base.clock import now_ns
from ...store.stacks.stack_samples import FORMAT, BurstFile, ProcessRow, StackRequest
from ..registry import Main
from .merge_stacks import Merged
from .py_spy import ENDED, Outcome, Recording, why_failed
from .readings import Readings

MAX_WORKERS = 4

READINGS_A_CORE_HZ = 25  # 1 to 2 % of a core: a reading costs 0.4 to 0.8 ms of CPU
CPU_SHARE = 0.03  # of the cores at hand: a burst that takes more ends early
CPU_START_NS = 150_000_000  # of each py-spy, to find its way in the process
S = 1_000_000_000
SECONDS, GIL_SECONDS = 10, 2
LEAST_HZ, MOST_HZ = 5, 25
EAGER_SECONDS, EAGER_GIL_SECONDS, EAGER_HZ = 3, 1, 50
MAX_TARGETS = 64
RELIEF_NS = 2 * S  # for less of a burst than this, the workers of a new epoch are not read
HUNG_NS = 10 * S
LEAVING_S = 1.5  # how long a burst may write its data when the training has ended


def plan(
    cores: float, processes: int, asked: StackRequest | None, eager: bool, slower: float
) -> tuple[int, int, int, int]:
    """(readings a second of each process, seconds of stacks, seconds about the GIL, CPU time in ns)
    of a burst of so many processes on so many cores; `slower` divides the rate where a burst cost
    more than allowed."""
    seconds = EAGER_SECONDS if eager else SECONDS
    rate = EAGER_HZ if eager else min(MOST_HZ, READINGS_A_CORE_HZ * cores / processes) / slower
    gil_seconds = EAGER_GIL_SECONDS if eager else GIL_SECONDS
    if asked is not None:
        seconds = int(asked.seconds or seconds)
    limit_s = CPU_SHARE * cores * seconds * (3 if eager else 1)
    limit_ns = int(limit_s * S) + processes * CPU_START_NS
    return max(LEAST_HZ, round(rate)), seconds, gil_seconds, limit_ns


class StackCapture:
    """A burst at work: call `go_on` at each tick until it returns True, then `file`."""

    def __init__(
        self,
        number: int,
        main: Main,
        loader: int | None,
        asked: StackRequest | None,
        cores: float,
        slower: float,
        program: str,
        folder: Path,
        now: int,
    ) -> None:
        """`program` is py-spy, whose files go to `folder`."""
        self.number = number
        self.asked = asked
        self.early = False
        self.main = main
        self._loader = loader
        self._program = program
        self._folder = folder
        self._targets = {main.probe.pid: ProcessRow(main.probe.pid, main.probe.pid)}
        self._targets |= self._new_workers(MAX_WORKERS)
        self._workers = len(self._targets) - 1  # how many are read at a time
        self._rate_hz, self._seconds, self._gil_seconds, self._cpu_limit_ns = plan(
            cores, len(self._targets), asked, main.stacks == "eager", slower
        )
        self._t_begin_ns, self._t_end_ns = now, 0
        self._deadline_ns = now + self._seconds * S + HUNG_NS
        self._merged = Merged()
        self.readings = Readings()
        self._failures: set[str] = set()
        self._ended: set[int] = set()  # processes that ended before their recording did
        self._recordings: list[Recording] = []
        for pid in self._targets:
            self._read(pid, self._seconds, self._rate_hz, gil=False)

    @property
    def reason(self) -> str | None:
        """Why there are no stacks; None if there are."""
        if self.samples:
            return None
        # Of several failures, one that can be fixed says more than that a worker had ended.
        return min(self._failures, key=lambda each: each == ENDED, default="py-spy took no sample")

    @property
    def samples(self) -> int:
        return sum(target.samples for target in self._targets.values())

    @property
    def _over(self) -> bool:
        return all(one.over for one in self._recordings)

    def go_on(self, now: int) -> bool:
        """Whether it is over."""
        if not self.early:
            self._relieve(now)
        if not self._over:
            self._restrain(now)
            return False
        self._take_in()
        if not self._gil_seconds or self.reason is not None:
            return True
        seconds, self._gil_seconds = self._gil_seconds, 0
        self._deadline_ns = now + seconds * S + HUNG_NS
        for pid, target in self._targets.items():
            if target.samples and pid not in self._ended:
                self._read(pid, seconds, min(2 * self._rate_hz, EAGER_HZ), gil=True)
        return not self._recordings

    def close(self) -> None:
        """End it now with what it has."""
        for one in self._recordings:
            one.end()
        deadline = time.monotonic() + LEAVING_S
        while not self._over and time.monotonic() < deadline:
            self.readings.wait(0.02)
        for one in self._recordings:
            one.kill()
        self._take_in()

    def abandon(self) -> None:
        """End it, whatever state it is in. Never raises."""
        with suppress(Exception):
            for one in self._recordings:
                one.kill()
                one.clear()
        self.readings.close()

    def file(self) -> BurstFile:
        """What its file holds."""
        self.readings.close()
        targets = tuple(self._targets.values())
        slots = [(each.owner, each.worker) for each in targets]
        frames, stacks, dropped, waits = self._merged.kept(slots)
        return BurstFile(
            format=FORMAT,
            number=self.number,
            t_begin_ns=self._t_begin_ns,
            t_end_ns=self._t_end_ns or now_ns(),
            rate_hz=self._rate_hz,
            why="steady" if self.asked is None else "asked",
            nonce=None if self.asked is None else self.asked.nonce,
            reason=self.reason,
            ended_early=self.early,
            failures=tuple(sorted(self._failures)[:10]),
            package=os.path.abspath(Path(__file__).parents[3]),
            processes=targets,
            frames=frames,
            waits=waits,
            waits_reason=None if waits else self.readings.reason,
            stacks=stacks,
            dropped=dropped,
        )

    def end_early(self) -> None:
        """End it now with what it has, without the part about the GIL."""
        self.early = True
        self._gil_seconds = 0
        for one in self._recordings:
            one.end()

    def _new_workers(self, most: int) -> dict[int, ProcessRow]:
        """At most this many workers that were not read yet, those of the loader first."""
        new = (item for item in self.main.workers.items() if item[0] not in self._targets)
        ranked = sorted(new, key=lambda item: (item[1].loader != self._loader, item[1].worker))
        owner = next(iter(self._targets))
        return {pid: ProcessRow(pid, owner, one.worker, one.loader) for pid, one in ranked[:most]}

    def _read(self, pid: int, seconds: int, rate_hz: int, gil: bool) -> None:
        worker = self._targets[pid].worker
        # With workers, the training process waits for those.
        if not (gil or (self._workers and worker is None)):
            self.readings.watch(pid)
        try:
            recording = Recording(self._program, pid, self._folder, rate_hz, seconds, gil)
            self._recordings.append(recording)
        except OSError as error:
            self._failures.add(f"py-spy cannot be started: {error.strerror or error}")

    def _restrain(self, now: int) -> None:
        """Kill recordings that hang, and end a burst that costs more than allowed."""
        if now > self._deadline_ns:
            self._failures.add("py-spy did not end in time and was stopped")
            for one in self._recordings:
                one.kill()
        elif not self.early and self._cpu_limit_ns < sum(one.cpu_ns() for one in self._recordings):
            self.end_early()

    def _relieve(self, now: int) -> None:
        """Go on with the workers of a new epoch where those of the last have ended, or where there
        were none when the burst began."""
        self._workers = self._workers or min(len(self.main.workers), MAX_WORKERS)
        left_ns = self._t_begin_ns + self._seconds * S - now
        at_work = [one.pid for one in self._recordings if not one.over]
        free = self._workers - sum(self._targets[pid].worker is not None for pid in at_work)
        if (
            left_ns < RELIEF_NS
            or any(one.gil for one in self._recordings)
            or free <= 0
            or len(self._targets) >= MAX_TARGETS
        ):
            return
        new = self._new_workers(free)
        self._targets |= new
        for pid in new:
            self._read(pid, left_ns // S, self._rate_hz, gil=False)

    def _take_in(self) -> None:
        """Read what the ended recordings wrote."""
        if not any(one.gil for one in self._recordings):
            self._t_end_ns = now_ns()
        for one in self._recordings:
            outcome = one.outcome()
            if "Stopped sampling" in outcome.message:
                self._ended.add(one.pid)
            if not one.gil:
                self._take_stacks(one, outcome)
            # py-spy counts the readings that found the GIL held; one that ended before its time
            # does not say of how many.
            elif outcome.status == 0 and outcome.samples is not None and one.pid not in self._ended:
                readings = one.rate_hz * one.seconds - (outcome.errors or 0)
                share = min(1.0, outcome.samples / readings) if readings > 0 else None
                self._targets[one.pid].gil = share
            one.clear()
        self._recordings = []

    def _take_stacks(self, one: Recording, outcome: Outcome) -> None:
        place = list(self._targets).index(one.pid)
        try:
            if outcome.status != 0:
                raise ValueError(why_failed(outcome.message))
            self._targets[one.pid].samples = self._merged.add(
                place,
                one.pid,
                one.output,
                lambda samples: self.readings.pairs(one.pid, samples, outcome.message),
            )
        except ValueError as error:
            self._failures.add(str(error))
        except (OSError, KeyError, TypeError, IndexError, AttributeError) as error:
            self._failures.add(f"what py-spy wrote cannot be read: {type(error).__name__}")
