"""When a burst of stack samples is due, automatically or on request, and the file it is written
to."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...base.atomic_write import write_atomically
from ...base.clock import now_ns
from ...base.tolerant import as_json
from ...store.lanes.lane_tail import WAITING_SHARE, Loop, Watcher
from ...store.stacks.stack_samples import (
    FORMAT,
    MAX_FILES,
    REQUEST,
    BurstFile,
    StackRequest,
    read_request,
)
from ..reasons import Reasons
from ..registry import Main
from .capture import S, StackCapture
from .py_spy import MISSING, find_py_spy

MAX_AUTOMATIC = 8  # in a run
MAX_CUT = 8  # bursts of a run that a reader ended, and that are taken again
# (age of the run, how often it is looked at until then).
LOOK_EVERY_NS = ((10 * S, S // 4), (60 * S, S), (math.inf, 5 * S))
# Quick workers map and unmap shared memory all the time, which a reading holds up: at a step of
# 1 ms, 17 readings a second of three processes cost 9 %; at 3 ms, less than 3
# (benchmarks/stacks_cost.py).
QUICK_STEP_NS = 3_500_000
# A burst ends after this long if the steps of its loop take so much longer than before.
COST_SEEN_NS = 2 * S
COSTLY = 1.1
COST_STEPS = 100  # on both sides, for a mean that can be compared

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
    """The bursts of one sampler, which calls `tick` at each of its ticks and `close` at its end.
    Neither raises."""

    def __init__(self, run: Path, system: Path, reasons: Reasons, cores: float) -> None:
        """`cores`: how many the training may use."""
        self.system = system
        self._request = run / REQUEST
        self._request_seen: tuple[int, int] | None = None
        self._reasons = reasons
        self._cores = max(1.0, cores)
        self._program = find_py_spy()
        self._watchers: dict[Path, Watcher] = {}
        self._taken: set[Path] = set()  # training processes with an automatic burst
        self._burst: StackCapture | None = None
        # The loop whose burst may slow it down, its mean step before, and when to compare.
        self._uncosted: tuple[Watcher, Loop, float, int] | None = None
        self._waiting: StackRequest | None = None
        self._number = self._cut = 0
        self._succeeded = False
        self._look_due_ns = 0
        self._begun_ns = now_ns()
        self._request_stale_ns = time.time_ns() - 10 * S
        self._say(MISSING if self._program is None else YOUNG)

    @property
    def busy(self) -> bool:
        return self._burst is not None

    def listen(self) -> None:
        """Look for a request, between two ticks too: a reader may wait for the burst at work to
        end. Never raises."""
        try:
            asked = self._heard()
            if asked is None or not asked.so_far:
                self._waiting = asked or self._waiting
            elif self._burst is not None:
                self._cut_short(self._burst)
        except Exception as error:
            self._abandon(error)

    def tick(self, now: int, living: Sequence[Main]) -> None:
        self.listen()
        try:
            if self._burst is not None:
                self._judge_cost(now, self._burst)
                if self._burst.go_on(now):
                    self._finish(self._burst)
            elif self._waiting is not None:
                asked, self._waiting = self._waiting, None
                self._answer(now, living, asked)
            elif self._program is not None:
                self._look(now, living)
        except Exception as error:
            self._abandon(error)

    def wait(self, seconds: float) -> None:
        """Sleep, and see what a burst at work reads meanwhile. Never raises."""
        if self._burst is not None:
            self._burst.readings.wait(seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """End a burst at work with what it has. Never raises."""
        try:
            if self._burst is not None:
                self._burst.close()
                self._finish(self._burst)
        except Exception as error:
            self._abandon(error)

    def _cut_short(self, burst: StackCapture) -> None:
        """End it with what it has. A loop that goes on for long enough gets another."""
        burst.close()
        self._finish(burst)
        directory = burst.main.directory
        watcher = self._watchers.get(directory)
        if watcher is not None and directory in self._taken and self._cut < MAX_CUT:
            watcher.look()
            watcher.forget()
            self._cut += 1
            self._taken.remove(directory)

    # When.

    def _look(self, now: int, living: Sequence[Main]) -> None:
        """Whether a burst of a training process is due."""
        if not living or now < self._look_due_ns or len(self._taken) >= MAX_AUTOMATIC:
            return
        age_ns = now - self._begun_ns
        every_ns = next(every for until, every in LOOK_EVERY_NS if age_ns < until)
        eager = any(main.stacks == "eager" for main in living)
        self._look_due_ns = now + (0 if eager else every_ns)
        computing = False
        due: list[tuple[Watcher, Main, Loop]] = []
        wanted = [main for main in living if main.stacks != "off"]
        for main in wanted:
            if main.directory in self._taken:
                continue
            eager, watcher = main.stacks == "eager", self._watcher(main)
            for loop in watcher.steady(eager):
                computing = True
                if loop.waiting_share >= WAITING_SHARE or eager:
                    due.append((watcher, main, loop))
        if due:  # of several ranks the one that holds the others up
            watcher, main, loop = max(due, key=lambda each: each[2].waiting_share)
            self._taken.add(main.directory)
            step_ns = loop.step_mean_ns
            if step_ns is not None and main.stacks != "eager" and loop.batches >= COST_STEPS:
                self._uncosted = watcher, loop, step_ns, now + COST_SEEN_NS
            self._begin(now, main, loop, None)
            watcher.forget()
        elif not self._taken:
            self._say(OFF if not wanted else COMPUTING if computing else YOUNG)

    def _watcher(self, main: Main) -> Watcher:
        """The loops of this process, as they are now."""
        watcher = self._watchers.setdefault(main.directory, Watcher(main.directory))
        watcher.look()
        return watcher

    def _judge_cost(self, now: int, burst: StackCapture) -> None:
        """End a burst that slows the loop down."""
        if self._uncosted is None or now < self._uncosted[3]:
            return
        watcher, loop, before_ns, _ = self._uncosted
        self._uncosted = None
        watcher.look()
        if loop.batches >= COST_STEPS and (loop.step_mean_ns or 0.0) > COSTLY * before_ns:
            burst.end_early()

    def _heard(self) -> StackRequest | None:
        """A new request, if it was not made before this sampler began."""
        try:
            found = os.stat(self._request)
        except OSError:
            return None
        seen = found.st_ino, found.st_mtime_ns
        fresh = found.st_mtime_ns >= self._request_stale_ns and seen != self._request_seen
        self._request_seen = seen
        return read_request(self._request) if fresh else None

    def _answer(self, now: int, living: Sequence[Main], asked: StackRequest) -> None:
        self._program = self._program or find_py_spy()  # installed meanwhile?
        if self._program is None:
            self._refuse(now, asked, MISSING)
        elif not living:
            self._refuse(now, asked, "no training process of this run is alive on this host")
        else:
            # The loop that waited longest for its data since the last look.
            loops = [(main, it) for main in living for it in self._watcher(main).loops.values()]
            first = living[0], None
            main, loop = max(loops, key=lambda each: each[1].wait_ns, default=first)
            self._begin(now, main, loop, asked)

    def _begin(self, now: int, main: Main, loop: Loop | None, asked: StackRequest | None) -> None:
        assert self._program is not None
        slower, loader = 1.0, None
        if loop is not None:
            loader = loop.loader
            if main.workers and loop.step_mean_ns:
                slower = max(1.0, QUICK_STEP_NS / loop.step_mean_ns)
        self._burst = StackCapture(
            self._next_number(),
            main,
            loader,
            asked,
            self._cores,
            slower,
            self._program,
            self.system,
            now,
        )

    def _finish(self, burst: StackCapture) -> None:
        self._burst = self._uncosted = None
        self._write(burst.file())
        if burst.reason is None:
            self._succeeded = True
            self._reasons.drop("stacks")
        else:
            self._say(burst.reason)

    def _refuse(self, now: int, asked: StackRequest, reason: str) -> None:
        """Answer a request with the reason why there are no stacks."""
        self._write(
            BurstFile(
                format=FORMAT,
                number=self._next_number(),
                t_begin_ns=now,
                t_end_ns=now,
                why="asked",
                nonce=asked.nonce,
                reason=reason,
            )
        )

    def _abandon(self, error: Exception) -> None:
        """An unexpected failure: no burst is left at work, and the reason is recorded."""
        burst, self._burst = self._burst, None
        if burst is not None:
            burst.abandon()
        self._say(f"taking stacks failed: {type(error).__name__}: {error}"[:300])

    def _next_number(self) -> int:
        number, self._number = self._number, min(self._number + 1, MAX_FILES - 1)
        return number

    def _write(self, file: BurstFile) -> None:
        with suppress(OSError):  # a full disk: the sampler's lanes will tell
            text = json.dumps(as_json(file))
            write_atomically(self.system / f"stacks-{file.number}.json", text)

    def _say(self, reason: str) -> None:
        """Why there are no stacks of this run, unless there are."""
        if not self._succeeded and self._reasons.sentences.get("stacks") != reason:
            self._reasons.drop("stacks")
            self._reasons.add(reason, "stacks")
