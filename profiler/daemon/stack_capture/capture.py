"""One burst of stack samples: its recordings side by side, and what they have seen together.

py-spy runs as the sampler's child, one for main and one for each of a few workers (workers of a
loader are alike). With `--subprocesses` one would do for all, at 1.5 times the cost: it looks
through /proc for new children ten times a second (measured: 0.6 ms of CPU a reading of a process
with three Python threads, 1.0 ms with that option). A burst has two parts, the stacks with idle
threads and then, shorter, who holds the GIL. Nothing here ever waits: each tick looks at what has
come about.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.clock import now_ns
from ..procfs import parse_stat, read
from ..registry import Main
from .merge_stacks import Merged
from .py_spy import Recording, why_failed
from .requests import Asked

FORMAT = 1
MAX_WORKERS = 4

# A reading costs 0.4 to 0.8 ms of CPU: so many a second and core take 1 to 2 % of it.
READINGS_A_CORE_HZ = 25
CPU_SHARE = 0.03  # of the cores at hand: a burst that takes more ends early
CPU_START_NS = 150_000_000  # of each py-spy, to find its way in the process
SECONDS, GIL_SECONDS = 10, 2
LEAST_HZ, MOST_HZ = 5, 25
EAGER_SECONDS, EAGER_GIL_SECONDS, EAGER_HZ = 3, 1, 50
NATIVE_SECONDS, NATIVE_HZ, NATIVE_WORKERS = 2, 10, 1
MAX_TARGETS = 64
RELIEF_NS = 2_000_000_000  # for less of a burst than this, the workers of a new epoch are not read
HUNG_NS, NATIVE_HUNG_NS = 10_000_000_000, 30_000_000_000
LEAVING_S = 1.5  # what a burst gets to write what it has when the training has ended


StartRecording = Callable[..., Recording]


@dataclass(frozen=True)
class Target:
    """One process to be read. `worker` and `loader` are numbers, None for a training process."""

    pid: int
    owner: int
    worker: int | None = None
    loader: int | None = None


@dataclass(frozen=True)
class Plan:
    """How a burst is taken: readings a second of each process, and the length of its parts."""

    rate_hz: int
    seconds: int
    gil_seconds: int
    cpu_limit_ns: int


def plan(cores: float, processes: int, asked: Asked | None, eager: bool, slower: float) -> Plan:
    """For so many processes on so many cores; `slower` divides the rate where a burst was dearer
    than allowed."""
    seconds = EAGER_SECONDS if eager else SECONDS
    if asked is not None and asked.seconds is not None:
        seconds = asked.seconds
    rate = EAGER_HZ if eager else min(MOST_HZ, READINGS_A_CORE_HZ * cores / processes) / slower
    gil_seconds = EAGER_GIL_SECONDS if eager else GIL_SECONDS
    if asked is not None and asked.native:
        seconds, rate, gil_seconds = min(seconds, NATIVE_SECONDS), NATIVE_HZ, 0
    limit_s = CPU_SHARE * cores * seconds * (3 if eager else 1)
    return Plan(
        max(LEAST_HZ, round(rate)),
        seconds,
        gil_seconds,
        int(limit_s * 1e9) + processes * CPU_START_NS,
    )


def targets_of(main: Main, loader: int | None, most: int) -> list[Target]:
    """The training process and at most so many of its workers, those of `loader` first."""
    assert main.probe is not None
    owner = main.probe.pid
    ranked = sorted(
        main.workers.items(), key=lambda item: (item[1].loader != loader, item[1].worker)
    )
    chosen = [Target(pid, owner, worker.worker, worker.loader) for pid, worker in ranked[:most]]
    return [Target(owner, owner), *chosen]


class StackCapture:
    """One at work: `go_on` at each tick until it says that it is over, then `told`."""

    def __init__(
        self,
        number: int,
        main: Main,
        loader: int | None,
        asked: Asked | None,
        cores: float,
        slower: float,
        start: StartRecording,
        program: str,
        folder: Path,
        root: Path,
        now: int,
    ) -> None:
        self.number = number
        self.asked = asked
        self.native = asked is not None and asked.native
        self.early = False
        self.samples: dict[int, int] = {}
        self._main = main
        self._start = start
        self._program = program
        self._folder = folder
        self._root = root
        self._targets = targets_of(main, loader, NATIVE_WORKERS if self.native else MAX_WORKERS)
        self._workers = len(self._targets) - 1  # how many are read at a time
        self._plan = plan(cores, len(self._targets), asked, main.stacks == "eager", slower)
        self._gil_seconds = self._plan.gil_seconds
        # Processes that somebody else had stopped before.
        self._stopped = {
            one.pid for one in self._targets if self.native and state_of(one.pid) in (b"T", b"t")
        }
        self._t_begin_ns, self._t_end_ns = now, 0
        self._deadline_ns = (
            now + self._plan.seconds * 1_000_000_000 + (NATIVE_HUNG_NS if self.native else HUNG_NS)
        )
        self._cpu_begin_s = _children_s()
        self._merged = Merged()
        self._gil: dict[int, float] = {}
        self._gone: set[int] = set()  # processes that ended before their recording did
        self._failures: list[str] = []
        self._recordings: list[Recording] = []
        for target in self._targets:
            self._read(target, self._plan.seconds, self._plan.rate_hz, gil=False)

    @property
    def reason(self) -> str | None:
        """Why there are no stacks; None if there are."""
        if self.samples:
            return None
        # Of several failures, one that can be mended says more than that a worker had ended.
        ranked = sorted(self._failures, key=lambda failure: failure == "the process had ended")
        return ranked[0] if ranked else "py-spy took no sample"

    def go_on(self, now: int) -> bool:
        """Whether it is over."""
        if not self.native and not self.early:
            self._relieve(now)
        if not all(one.over for one in self._recordings):
            self._restrain(now)
            return False
        self._take_in()
        if not self._gil_seconds or not self.samples:
            return True
        seconds, self._gil_seconds = self._gil_seconds, 0
        self._deadline_ns = now + seconds * 1_000_000_000 + HUNG_NS
        for target in self._targets:
            if target.pid in self.samples and target.pid not in self._gone:
                self._read(target, seconds, min(2 * self._plan.rate_hz, EAGER_HZ), gil=True)
        return not self._recordings

    def close(self) -> None:
        """End it now, keeping what it has seen."""
        for one in self._recordings:
            one.end()
        deadline = time.monotonic() + LEAVING_S
        while not all(one.over for one in self._recordings) and time.monotonic() < deadline:
            time.sleep(0.02)
        for one in self._recordings:
            one.kill()
        self._take_in()

    def abandon(self) -> None:
        """End it, whatever state it is in. Never raises."""
        with suppress(Exception):
            for one in self._recordings:
                one.kill()
                one.clear()
            self._wake()

    def told(self) -> dict[str, Any]:
        """What its file holds."""
        return {
            "format": FORMAT,
            "number": self.number,
            "t_begin_ns": self._t_begin_ns,
            "t_end_ns": self._t_end_ns or now_ns(),
            "rate_hz": self._plan.rate_hz,
            "native": self.native,
            "why": "steady" if self.asked is None else "asked",
            "nonce": None if self.asked is None else self.asked.nonce,
            "reason": self.reason,
            "cpu_s": round(_children_s() - self._cpu_begin_s, 3),
            "ended_early": self.early,
            "failures": sorted(set(self._failures))[:10],
            "package": os.path.abspath(Path(__file__).parents[3]),
            "processes": [
                {
                    "pid": target.pid,
                    "owner": target.owner,
                    "worker": target.worker,
                    "loader": target.loader,
                    "samples": self.samples.get(target.pid, 0),
                    "gil": self._gil.get(target.pid),
                }
                for target in self._targets
            ],
            **self._merged.told(),
        }

    def _read(self, target: Target, seconds: int, rate_hz: int, gil: bool) -> None:
        try:
            one = self._start(
                self._program,
                target.pid,
                self._folder,
                rate_hz,
                seconds,
                native=self.native,
                gil=gil,
            )
        except OSError as error:
            self._failures.append(f"py-spy cannot be started: {error.strerror or error}")
        else:
            self._recordings.append(one)

    def _restrain(self, now: int) -> None:
        """One that hangs is killed, one that is dearer than it may be ends with what it has."""
        if now > self._deadline_ns:
            self._failures.append("py-spy did not end in time and was stopped")
            for one in self._recordings:
                one.kill()
        elif not self.native and not self.early and self._costs_too_much():
            self.end_early()

    def _costs_too_much(self) -> bool:
        return sum(one.cpu_ns() for one in self._recordings) > self._plan.cpu_limit_ns

    def end_early(self) -> None:
        """It costs more than it may: what it has seen is kept."""
        self.early = True
        self._gil_seconds = 0
        for one in self._recordings:
            one.end()

    def _relieve(self, now: int) -> None:
        """Go on with the workers of a new epoch where those of the last have ended."""
        left_ns = self._t_begin_ns + self._plan.seconds * 1_000_000_000 - now
        if (
            left_ns < RELIEF_NS
            or self._main.probe is None
            or any(one.gil for one in self._recordings)
        ):
            return
        at_work = {one.pid for one in self._recordings if not one.over}
        known = {one.pid for one in self._targets}
        free = self._workers - len(at_work - {self._main.probe.pid})
        if free <= 0 or len(self._targets) >= MAX_TARGETS:
            return
        loader = next((one.loader for one in self._targets if one.loader is not None), None)
        for target in targets_of(self._main, loader, len(self._main.workers))[1:]:
            if target.pid not in known and free > 0:
                free -= 1
                self._targets.append(target)
                self._read(target, left_ns // 1_000_000_000, self._plan.rate_hz, gil=False)

    def _take_in(self) -> None:
        """What the recordings that have ended say."""
        places = {target.pid: at for at, target in enumerate(self._targets)}
        for one in self._recordings:
            if "Stopped sampling" in one.outcome().message:
                self._gone.add(one.pid)
            if one.gil:
                self._take_gil(one)
            else:
                self._take_stacks(one, places[one.pid])
            one.clear()
        if not any(one.gil for one in self._recordings):
            self._t_end_ns = now_ns()
        self._wake()
        self._recordings = []

    def _take_gil(self, one: Recording) -> None:
        outcome = one.outcome()
        # py-spy counts the looks that found the GIL held; one that ended before its time does not
        # say of how many.
        looks = 0 if one.pid in self._gone else one.rate_hz * one.seconds - (outcome.errors or 0)
        if outcome.status == 0 and outcome.samples is not None and looks > 0:
            self._gil[one.pid] = min(1.0, outcome.samples / looks)

    def _take_stacks(self, one: Recording, place: int) -> None:
        outcome = one.outcome()
        try:
            if outcome.status != 0:
                raise ValueError(why_failed(outcome.message, self._root))
            taken = self._merged.add(place, one.pid, one.output, self.native)
            if taken:
                self.samples[one.pid] = taken
        except ValueError as error:
            self._failures.append(str(error))
        except (OSError, KeyError, TypeError, IndexError, AttributeError) as error:
            self._failures.append(f"what py-spy wrote cannot be read: {type(error).__name__}")

    def _wake(self) -> None:
        """A process that py-spy left stopped goes on; one that somebody else had stopped does
        not."""
        for target in self._targets if self.native else ():
            if target.pid not in self._stopped and state_of(target.pid) == b"T":
                with suppress(OSError):
                    os.kill(target.pid, signal.SIGCONT)


def state_of(pid: int) -> bytes | None:
    """The letter of a process's state; None where there is no such process."""
    try:
        return parse_stat(read(f"/proc/{pid}/stat")).state
    except (OSError, ValueError, IndexError):
        return None


def _children_s() -> float:
    """CPU time of the children that have been waited for, s."""
    times = os.times()
    return times.children_user + times.children_system
