"""Steps of which the device has yet to reach the events, or nobody has read them: what they say is
written here.

    next() entered       event N(k)      the device has been given all work of step k
    batch handed over    event H(k+1)    the loop is about to give it work of step k+1

N(k) → H(k+1) is the stall, H(k) → N(k) the device's time on step k. A log outlives the iterator
that it belongs to: a loop may end, or be left, long before the device has done what it was given.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from typing import Any, Protocol

from ...base import batch_record
from ...guard.error_origin import is_ours
from ...store.lanes.lane import Window
from .accelerator import Event
from .handed_over import HandedOver, elapsed_ns

# Steps whose events are not reached yet; beyond this the oldest are given up rather than held for
# ever.
MAX_PENDING = 256
# Logs of iterations that are over: the device may be most of a short epoch behind.
MAX_LOGS = 16

_logs: deque[tuple[int, StepLog]] = deque(maxlen=MAX_LOGS)


class Clock(Protocol):
    """What a log needs of its clock (`device_clock.DeviceClock`)."""

    log: list[Any]
    pool: list[Any]
    recorder: Any

    def over(self) -> bool: ...

    def forget(self) -> None: ...

    def untimed(self, error: Exception) -> None: ...


class StepLog:
    """The events of one iterator's steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._copied: list[HandedOver] = []
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """An iteration begins: from now on there may be something to be read when it is over."""
        if not any(log is self for _, log in list(_logs)):
            _logs.append((os.getpid(), self))
        atexit.unregister(read_logs)
        atexit.register(read_logs)  # the program may end with this epoch

    def left(self) -> bool:
        """Whether there is anything left to be read."""
        return bool(self._clock.log or self._copied)

    def over(self) -> bool:
        """Whether its iteration is, which then looks for no copies any more."""
        over = self._clock.over()
        if over:
            self._clock.forget()
        return over

    def of(self, recorder: Any) -> bool:
        """Whether these are steps of that recorder's."""
        return self._clock.recorder is recorder

    def add(self, batch: HandedOver) -> None:
        """It was copied once more after it was read."""
        self._copied.append(batch)

    def read(self, closing: bool = False) -> None:
        """Write what the device has reached; of all else, when `closing`, what is certain without
        it."""
        if not self._lock.acquire(blocking=False):  # another thread is at it
            return
        try:
            self._read_steps(closing)
            self._read_copies()
        except Exception as error:
            if not is_ours(error):
                raise
            self._clock.log.clear()
            self._copied.clear()
            self._clock.untimed(error)
        finally:
            self._lock.release()

    def _read_steps(self, closing: bool) -> None:
        steps, pool = self._clock.log, self._clock.pool
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
                self._copied.append(looked)
            if where is not window:
                if window is not None:
                    window.patch(patches)
                window, patches = where, []
            patches.append(batch_record.ON_DEVICE.patch(at, compute, stall))
        if window is not None:
            window.patch(patches)
        del steps[:read]

    def _read_copies(self) -> None:
        copied, self._copied = self._copied[-MAX_PENDING:], []
        for batch in copied:
            if batch.done():
                self._clock.pool.extend(batch.read())
            else:
                self._copied.append(batch)


def _stall_so_far(before: Event | None, handed: Event | None, wait_ns: int) -> int:
    """Of a step that the device has not done: none where it has not even done the step before, of
    which it still had work, then, when the batch was handed over. -1 where that is not known."""
    if before is None or handed is None:
        return -1
    if handed.query():
        return min(elapsed_ns(before, handed), wait_ns)
    return -1 if before.query() else 0


def read_logs(closing: Any = None) -> None:
    """Read what the device has reached since iterations were over. `closing`: a recorder whose
    records end now. Raises no error of ours."""
    pid = os.getpid()
    for _ in range(len(_logs)):
        try:
            whose, log = _logs.popleft()
        except IndexError:  # another thread is at it
            return
        if whose != pid:
            continue
        closes, over = log.of(closing), log.over()
        if closes or over:
            log.read(closes)
        if not closes and (log.left() or not over):
            _logs.append((pid, log))
