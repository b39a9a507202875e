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
from typing import TYPE_CHECKING, Any

from ...base import batch_record
from ...guard.error_origin import is_ours
from ...store.lanes.lane import Window
from .accelerator import Event
from .handed_over import HandedOver, elapsed_ns

if TYPE_CHECKING:
    from .device_clock import DeviceClock

# Of more steps with unreached events, the oldest are given up.
MAX_PENDING = 256
# Logs of ended iterations: the device may be most of a short epoch behind.
MAX_LOGS = 16

_logs: deque[tuple[int, StepLog]] = deque(maxlen=MAX_LOGS)


class StepLog:
    """The events of one iterator's steps."""

    def __init__(self, clock: DeviceClock) -> None:
        self.clock = clock
        self.copied: list[HandedOver] = []  # batches with copies to be read
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """An iteration begins, and may leave events to be read after its end."""
        if not any(log is self for _, log in list(_logs)):
            _logs.append((os.getpid(), self))
        atexit.unregister(read_logs)
        atexit.register(read_logs)  # the program may end with this epoch

    def over(self) -> bool:
        """Whether its iteration is over. Its copies are then no longer looked for."""
        over = self.clock.over()
        if over:
            self.clock.forget()
        return over

    def read(self, closing: bool = False) -> None:
        """Write what the device has reached. When `closing`, also write what is certain of the
        rest."""
        if not self._lock.acquire(blocking=False):  # another thread is at it
            return
        try:
            self._read_steps(closing)
            self._read_copies()
        except Exception as error:
            if not is_ours(error):
                raise
            self.clock.log.clear()
            self.copied.clear()
            self.clock.without_times(f"carry no times: {error}")
        finally:
            self._lock.release()

    def _read_steps(self, closing: bool) -> None:
        steps, pool = self.clock.log, self.clock.pool
        window: Window | None = None
        patches: list[tuple[int, bytes]] = []
        read = 0
        for before, handed, left, where, at, wait_ns, looked in steps:
            compute = stall = -1
            if left is None or left.query():
                if handed is not None and left is not None:
                    compute = elapsed_ns(handed, left)
                if before is not None and handed is not None:
                    stall = min(elapsed_ns(before, handed), wait_ns)
                # `left` is the next step's `before`.
                pool.extend(event for event in (before, handed) if event is not None)
            elif closing or len(steps) - read > MAX_PENDING:
                stall = _stall_so_far(before, handed, wait_ns)
            else:
                break
            read += 1
            if looked is not None:
                self.copied.append(looked)
            if where is not window:
                if window is not None:
                    window.patch(patches)
                window, patches = where, []
            patches.append(batch_record.ON_DEVICE.patch(at, compute, stall))
        if window is not None:
            window.patch(patches)
        del steps[:read]

    def _read_copies(self) -> None:
        copied, self.copied = self.copied[-MAX_PENDING:], []
        for batch in copied:
            if batch.done():
                self.clock.pool.extend(batch.read())
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


def read_logs(closing: Any = None) -> None:
    """Read what the device has reached since. `closing`: a recorder whose records end now. Raises
    no error of ours."""
    pid = os.getpid()
    for _ in range(len(_logs)):
        try:
            whose, log = _logs.popleft()
        except IndexError:  # another thread is at it
            return
        if whose != pid:
            continue
        closes, over = log.clock.recorder is closing, log.over()
        if closes or over:
            log.read(closes)
        remaining = log.clock.log or log.copied
        if not closes and (remaining or not over):
            _logs.append((pid, log))
