"""Reads the events of steps once the device has reached them, and writes their times.

    next() entered       event N(k)      the device has been given all work of step k
    batch handed over    event H(k+1)    the loop is about to give it work of step k+1

N(k) → H(k+1) is the stall, H(k) → N(k) the device's time on step k. A log outlives its iterator: a
loop may end long before the device has done its work.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from typing import TYPE_CHECKING

from ...base import batch_record
from ...guard.error_origin import is_ours
from ...native.form import StepMarks
from .accelerator import Accelerator, Event
from .handed_over import HandedOver, elapsed_ns

if TYPE_CHECKING:
    from ...store.lanes.lane import Window
    from ..iterate.recorder import Recorder
    from .device_clock import DeviceClock

REASON = "h2d"  # the figure of a loader whose reason is noted here
# Of more steps with unreached events, the oldest are given up.
MAX_PENDING = 256
# Logs of ended iterations: the device may be most of a short epoch behind.
MAX_LOGS = 16

_logs: deque[tuple[int, DeviceClock]] = deque(maxlen=MAX_LOGS)


class StepLog(StepMarks):
    """The events of one iterator's steps, and how they are read."""

    def __init__(self, recorder: Recorder, device: Accelerator) -> None:
        self.recorder = recorder
        self._device = device
        self.copied: list[HandedOver] = []  # batches with copies to be read
        self._lock = threading.Lock()

    def read(self) -> None:
        """Write what the device has reached."""
        if not self._lock.acquire(blocking=False):  # another thread is at it
            return
        try:
            self._read_steps()
            self._read_copies()
        except Exception as error:
            if not is_ours(error):
                raise
            self.log.clear()
            self.copied.clear()
            self.without_events(f"the events of torch.{self._device.kind} carry no times: {error}")
        finally:
            self._lock.release()

    def without_events(self, reason: str) -> None:
        """Go on without them: copies are counted, not timed."""
        self.marking = False
        self.pool.clear()
        self.recorder.note(reason, REASON)

    def _read_steps(self) -> None:
        steps = self.log
        patches: dict[Window | None, list[tuple[int, bytes]]] = {}
        read = 0
        for before, handed, left, window, at, wait_ns, looked in steps:
            compute = stall = -1
            if left is None or left.query():
                if handed is not None and left is not None:
                    compute = elapsed_ns(handed, left)
                if before is not None and handed is not None:
                    stall = min(elapsed_ns(before, handed), wait_ns)
                # `left` is the next step's `before`.
                self.pool.extend(event for event in (before, handed) if event is not None)
            elif len(steps) - read > MAX_PENDING:
                stall = _stall_so_far(before, handed, wait_ns)
            else:
                break
            read += 1
            if looked is not None:
                self.copied.append(looked)
            row = batch_record.ON_DEVICE.patch(at, compute, stall)
            patches.setdefault(window, []).append(row)
        for window, rows in patches.items():
            if window is not None:
                window.patch(rows)
        del steps[:read]

    def _read_copies(self) -> None:
        copied, self.copied = self.copied[-MAX_PENDING:], []
        for batch in copied:
            if batch.done():
                self.pool.extend(batch.read())
            else:
                self.copied.append(batch)


def _stall_so_far(before: Event | None, handed: Event | None, wait_ns: int) -> int:
    """The stall of an unfinished step, -1 if unknown. It is 0 if the device has not even finished
    the step before: then it had work when the batch was handed over."""
    if before is None or handed is None:
        return -1
    if handed.query():
        return min(elapsed_ns(before, handed), wait_ns)
    return -1 if before.query() else 0


def keep_log(log: DeviceClock) -> None:
    """An iteration begins, and may leave events to be read after its end."""
    if not any(other is log for _, other in list(_logs)):
        _logs.append((os.getpid(), log))
    atexit.unregister(read_logs)
    atexit.register(read_logs)  # the program may end with this epoch


def read_logs() -> None:
    """Read what the device has reached since. Raises no error of ours."""
    pid = os.getpid()
    for _ in range(len(_logs)):
        try:
            whose, log = _logs.popleft()
        except IndexError:  # another thread is at it
            return
        if whose != pid:
            continue
        over = log.over()
        if over:
            log.forget()  # its copies are no longer looked for
            log.read()
        if log.log or log.copied or not over:
            _logs.append((pid, log))
