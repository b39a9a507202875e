"""When a burst of stack samples is due, by itself or because somebody asks, and the file each one
ends in."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.atomic_write import write_atomically
from ...base.clock import now_ns
from ...store.stacks.request_file import REQUEST
from ..procfs import read
from ..reasons import Reasons
from ..registry import Main
from .capture import FORMAT, StackCapture, StartRecording
from .py_spy import MISSING, NOT_LINUX, Recording, find_py_spy
from .requests import MAX_BYTES, Asked, checked_request
from .when import WAITING_SHARE, Loop, Watcher

MAX_FILES = 64
MAX_AUTOMATIC = 8  # in a run
AGAIN_NS = 300_000_000_000
EARLY_LOOK_NS = 250_000_000
LOOK_NS = 1_000_000_000
RARE_LOOK_NS = 5_000_000_000
EARLY_LOOKS_NS = 10_000_000_000  # how long a run is looked at four times a second
OFTEN_NS = 60_000_000_000  # how long a run is looked at once a second
# Workers that hand over batch after batch map and unmap shared memory all the time, which a reading
# holds up: at a step of 1 ms, 17 readings a second of three processes cost 9 %; at 3 ms, less than
# 3 (benchmarks/stacks_cost.py).
QUICK_STEP_NS = 3_500_000
# What a burst costs the loop itself is seen on the spot: a loop whose steps take so much longer in
# it than before gets no more of it than this long.
COST_SEEN_NS = 2_000_000_000
COSTLY = 1.1
COST_STEPS = 100  # on both sides, for their means to say something

OFF = (
    "stacks are switched off (LOADERSCOPE_STACKS=0, or stacks=False); `loaderscope stacks` takes "
    "them on demand"
)
YOUNG = (
    "the run was not steady for long enough: stacks are taken after 20 batches and 3 s, of a slow "
    "loader within 1 s"
)
COMPUTING = (
    "loading was not what the loop waited for, so none were taken; `loaderscope stacks` takes them "
    "on demand"
)


class Bursts:
    """Of one sampler. `tick` is called at each of its ticks and never raises; `close` at its
    end."""

    def __init__(
        self,
        run: Path,
        system: Path,
        reasons: Reasons,
        cores: float,
        root: Path = Path("/"),
        program: str | None = None,
        start: StartRecording = Recording,
        platform: str = sys.platform,
    ) -> None:
        """`cores`: how many the training may use. `program`: py-spy, looked for where it is not
        given."""
        self.system = system
        self.root = root
        self._request = run / REQUEST
        self._request_seen: tuple[int, int] | None = None
        self._reasons = reasons
        self._cores = max(1.0, cores)
        self._program = program if program is not None else find_py_spy()
        self._start = start
        self._possible = platform.startswith("linux")
        self._watchers: dict[Path, Watcher] = {}
        self._taken: dict[
            Path, list[int]
        ] = {}  # when, the automatic bursts of each training process
        self._burst: StackCapture | None = None
        self._uncosted: tuple[Watcher, Loop, float, int] | None = (
            None  # the loop, its step before, when to look
        )
        self._waiting: Asked | None = None
        self._number = 0
        self._slower = 1.0
        self._succeeded = False
        self._look_due_ns = 0
        self._begun_ns = now_ns()
        self._request_stale_ns = time.time_ns() - 10_000_000_000
        self._say(NOT_LINUX if not self._possible else MISSING if self._program is None else YOUNG)

    @property
    def busy(self) -> bool:
        return self._burst is not None

    def tick(self, now: int, living: Sequence[Main]) -> None:
        try:
            self._hear()
            if self._burst is not None:
                self._judge_cost(now, self._burst)
                if self._burst.go_on(now):
                    self._finish(self._burst)
            elif self._waiting is not None:
                asked, self._waiting = self._waiting, None
                self._answer(now, living, asked)
            elif self._possible and self._program is not None:
                self._look(now, living)
        except Exception as error:
            self._abandon(f"taking stacks failed: {type(error).__name__}: {error}")

    def close(self) -> None:
        """End what is at work, keeping what it has seen. Never raises."""
        try:
            burst = self._burst
            if burst is None:
                return
            burst.close()
            self._finish(burst)
        except Exception as error:
            self._abandon(f"taking stacks failed: {type(error).__name__}: {error}")

    # When.

    def _look(self, now: int, living: Sequence[Main]) -> None:
        """Whether a training process has come to where a burst is due."""
        if (
            not living
            or now < self._look_due_ns
            or sum(map(len, self._taken.values())) >= MAX_AUTOMATIC
        ):
            return
        eager = any(main.stacks == "eager" for main in living)
        self._look_due_ns = now + (0 if eager else self._pace(now - self._begun_ns))
        computing = False
        due: list[tuple[float, Watcher, Main, Loop]] = []
        wanted = [main for main in living if main.stacks != "off" and main.probe is not None]
        for main in wanted:
            times = self._taken.get(main.directory, [])
            if (
                len(times) >= 2
                or (times and now - times[-1] < AGAIN_NS)
                or (times and main.stacks == "eager")
            ):
                continue
            watcher = self._watchers.get(main.directory)
            if watcher is None:
                watcher = self._watchers[main.directory] = Watcher(main.directory)
            watcher.look()
            loops = watcher.steady(main.stacks == "eager")
            due += [
                (loop.waiting_share, watcher, main, loop)
                for loop in loops
                if loop.waiting_share >= WAITING_SHARE or main.stacks == "eager"
            ]
            computing = computing or bool(loops)
        if due:  # of several ranks the one that holds the others up
            _, watcher, main, loop = max(due, key=lambda each: each[0])
            self._taken.setdefault(main.directory, []).append(now)
            step_ns = loop.step_mean_ns
            if step_ns is not None and main.stacks != "eager" and loop.batches >= COST_STEPS:
                self._uncosted = watcher, loop, step_ns, now + COST_SEEN_NS
            watcher.forget()
            self._begin(now, main, loop.loader, step_ns, None)
            return
        if not self._succeeded and not self._taken:
            self._say(OFF if not wanted else COMPUTING if computing else YOUNG)

    @staticmethod
    def _pace(age_ns: int) -> int:
        if age_ns < EARLY_LOOKS_NS:
            return EARLY_LOOK_NS
        return LOOK_NS if age_ns < OFTEN_NS else RARE_LOOK_NS

    def _judge_cost(self, now: int, burst: StackCapture) -> None:
        """End a burst that slows the loop down."""
        if self._uncosted is None or now < self._uncosted[3]:
            return
        watcher, loop, before_ns, _ = self._uncosted
        self._uncosted = None
        watcher.look()
        if loop.batches >= COST_STEPS and (loop.step_mean_ns or 0.0) > COSTLY * before_ns:
            burst.end_early()

    def _hear(self) -> None:
        """Look for a request. What it says is checked, whoever wrote it."""
        try:
            found = os.stat(self._request)
        except OSError:
            return
        seen = found.st_ino, found.st_mtime_ns
        if seen == self._request_seen:
            return
        self._request_seen = seen
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return
        if found.st_mtime_ns < self._request_stale_ns:
            return  # of an earlier sampler of this run
        asked = checked_request(read(str(self._request)))
        if asked is not None:
            self._waiting = asked

    def _answer(self, now: int, living: Sequence[Main], asked: Asked) -> None:
        at_work = [main for main in living if main.probe is not None]
        if not self._possible:
            self._refuse(now, asked, NOT_LINUX)
        elif self._program is None:
            self._program = find_py_spy()  # installed meanwhile?
            if self._program is None:
                self._refuse(now, asked, MISSING)
            else:
                self._answer(now, living, asked)
        elif not at_work:
            self._refuse(now, asked, "no training process of this run is alive on this host")
        else:
            self._begin(now, *self._most_waiting(at_work), asked)

    def _most_waiting(self, living: Sequence[Main]) -> tuple[Main, int | None, float | None]:
        """The process and its loader that waited longest for its data since the last look, and the
        mean step, ns."""
        best: tuple[int, Main, int | None, float | None] = (-1, living[0], None, None)
        for main in living:
            watcher = self._watchers.setdefault(main.directory, Watcher(main.directory))
            watcher.look()
            for loop in watcher.loops.values():
                if loop.wait_ns > best[0]:
                    best = loop.wait_ns, main, loop.loader, loop.step_mean_ns
        return best[1:]

    def _begin(
        self, now: int, main: Main, loader: int | None, step_ns: float | None, asked: Asked | None
    ) -> None:
        program = self._program or "py-spy"
        slower = self._slower
        if main.workers and step_ns:
            slower *= max(1.0, QUICK_STEP_NS / step_ns)
        self._burst = StackCapture(
            *(self._number, main, loader, asked, self._cores, slower),
            *(self._start, program, self.system, self.root, now),
        )
        self._number = min(self._number + 1, MAX_FILES - 1)

    def _finish(self, burst: StackCapture) -> None:
        self._burst = self._uncosted = None
        self._write(burst.number, burst.told())
        if burst.early:
            self._slower *= 2
        self._succeeded = self._succeeded or burst.reason is None
        if self._succeeded:
            self._reasons.drop("stacks")
        elif burst.reason is not None:
            self._say(burst.reason)

    def _refuse(self, now: int, asked: Asked, reason: str) -> None:
        """Answer a request by saying why there are no stacks."""
        told: dict[str, Any] = {
            "format": FORMAT,
            "number": self._number,
            "t_begin_ns": now,
            "t_end_ns": now,
            "rate_hz": 0,
        }
        told |= {"native": asked.native, "why": "asked", "nonce": asked.nonce, "reason": reason}
        self._write(self._number, told)
        self._number = min(self._number + 1, MAX_FILES - 1)

    def _abandon(self, reason: str) -> None:
        """Something failed that should not have: no burst is left at work, and the reason is
        said."""
        burst, self._burst = self._burst, None
        if burst is not None:
            burst.abandon()
        if not self._succeeded:
            self._say(reason[:300])

    def _write(self, number: int, told: dict[str, Any]) -> None:
        with suppress(OSError):  # a full disk: the sampler's lanes will tell
            write_atomically(self.system / f"stacks-{number}.json", json.dumps(told))

    def _say(self, reason: str) -> None:
        if self._reasons.sentences.get("stacks") != reason:
            self._reasons.drop("stacks")
            self._reasons.add(reason, "stacks")
