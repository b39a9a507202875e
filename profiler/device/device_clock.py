"""Device time by events, never by waiting: events are recorded on the loop's own stream and read once they are done.

    next() entered       event N(k)      the device has been given all work of step k
    batch handed over    event H(k+1)    the loop is about to give it work of step k+1

Events are stamped by the device when it reaches them. N(k) → H(k+1) is therefore the time the device stood idle between
running out of work and the hand-over: the stall. H(k) → N(k) is its time on step k. Copies are bracketed by two events.

Only the stream current at those moments is seen; work on other streams is not. A backend whose events carry no times
has its copies counted all the same; times then stay None, with the reason.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from ..base.clock import now_ns
from ..guard.error_origin import is_ours
from ..inspect.inspect_loader import inspection_wanted
from ..lanes.lane import Lane
from . import copies
from .accelerator import Accelerator, Event, in_use
from .handed_over import MAX_TIMED_COPIES, SPARSE, HandedOver
from .waits import FIRST, Watch

if TYPE_CHECKING:
    from ..session.session import Session

# Batches whose events are not done yet; beyond this the oldest are given up rather than held for ever.
MAX_PENDING = 256
# A thread of the program's may copy a batch when the loop has gone on; so many batches are remembered for it.
LATE = 4
# Ended iterations whose last batches the device has yet to reach: it may be most of a short epoch behind.
MAX_ENDED = 16
# The reasons of a loader that say why there is nothing of the device, and why of pinning.
REASON, PINNED_REASON = "h2d", "h2d_pinned"
# Where a loader's JSON says what was seen of the steps that were looked at closely.
DEVICE_STEPS = "device_steps"


def device_clock(step: Timed) -> DeviceClock | None:
    """A device clock, if the training code has set up a device in this process; this never sets one up."""
    recorder = step.recorder
    try:
        device = in_use()
        if device is None:
            return None
        if isinstance(device, str):
            recorder.note(REASON, device)
            return None
        if recorder.session is not None:
            recorder.session.note_device(device.name())
        copies.install(device.kind)
        return DeviceClock(step, device)
    except Exception as error:
        if not is_ours(error):
            raise
        recorder.note(REASON, _failed(error))
        return None


_ended: deque[tuple[int, DeviceClock]] = deque(maxlen=MAX_ENDED)


def read_ended() -> None:
    """Read what the device has reached since their iterations ended. Raises no error of ours."""
    pid = os.getpid()
    for _ in range(len(_ended)):
        try:
            whose, clock = _ended.popleft()  # so that no other thread reads it
        except IndexError:
            return
        if whose == pid and clock.read_rest():
            _ended.append((pid, clock))


class Timed(Protocol):
    """What a clock needs of the iteration it times (`recorder.Iteration`)."""

    device: DeviceClock | None

    @property
    def recorder(self) -> Noting: ...


class Noting(Protocol):
    """What it needs of that loader's recorder."""

    @property
    def session(self) -> Session | None: ...

    facts: dict[str, Any]

    def note(self, metric: str, reason: str) -> None: ...

    def write(self) -> None: ...


class DeviceClock:
    """The device side of one iterator's records."""

    def __init__(self, step: Timed, device: Accelerator) -> None:
        self._device = device
        self._step = step
        self._index = device.current_device()
        self._pool: list[Event] = []
        self._pending: deque[HandedOver] = deque()
        self._recent: deque[HandedOver] = deque()
        self._open: HandedOver | None = None
        self._entered: Event | None = None
        self._t_entered = 0
        self._many = False  # the last batch had more copies than are timed one by one
        self._batches = 0
        self.watch: Watch | None = None  # while this loop's steps are looked at closely
        self._lacks = device.lacks  # why nothing is timed
        if self._lacks is not None:
            self._untimed(self._lacks)

    # The three moments of a step. Called from hot paths: they catch what goes wrong and switch the clock off.

    def entered(self) -> None:
        """next() has been entered: all work of this step has been issued."""
        try:
            event = self.mark()
            self._entered = event
            self._t_entered = now_ns()
            batch, self._open = self._open, None
            if batch is not None:
                copies.leave(batch)
                batch.write_copies()
                batch.left = event
                self._pending.append(batch)
                self._read()
            if self.watch is not None and self.watch.over():
                self._looked()
            if _ended:
                read_ended()
        except Exception as error:
            self._off(error)

    def handed_over(self, lane: Lane, n: int, data: Any) -> None:
        """The batch has been handed over; its record is number `n` of the lane's window."""
        try:
            self._batches += 1
            if self._batches == FIRST and DEVICE_STEPS not in self._step.recorder.facts:
                watch = Watch(self._device.kind, self._device.stream)
                self.watch = watch if watch.begin() else None
            timed = not self._many or self._batches % SPARSE == 0
            wait_ns = now_ns() - self._t_entered
            batch = HandedOver(self, lane.window, lane.at(n), wait_ns, timed)
            batch.entered_before, self._entered = self._entered, None
            batch.handed = self.mark()
            self._open = batch
            self._recent.append(batch)
            if len(self._recent) > LATE:
                copies.forget(self._recent.popleft())
            copies.expect(batch, data)
            if self.watch is not None:
                self.watch.handed_over()
        except Exception as error:
            self._off(error)

    def drain(self) -> None:
        """The iteration has ended. What is not done is read with the next one, or before the run is closed."""
        self._forget()
        if self.read_rest():
            _ended.append((os.getpid(), self))
            atexit.unregister(read_ended)
            atexit.register(read_ended)  # the program may end with this epoch

    def read_rest(self) -> bool:
        """Read what is done; whether anything is left."""
        try:
            self._read()
        except Exception as error:
            self._off(error)
            return False
        return bool(self._pending)

    def _looked(self) -> None:
        """The steps that were to be looked at are over."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()
            recorder = self._step.recorder
            recorder.facts[DEVICE_STEPS] = watch.found(with_source=inspection_wanted())
            recorder.write()

    def _forget(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()
        while self._recent:
            copies.forget(self._recent.popleft())

    # Events.

    def mark(self) -> Event | None:
        """An event on the current stream, now; None where there can be none."""
        device = self._device
        if self._lacks is not None:
            return None
        if device.current_device() != self._index:
            self._pool.clear()  # an event belongs to the device it was first recorded on
            self._index = device.current_device()
        if device.capturing():
            return None  # an event recorded now would become part of the user's graph
        try:
            event = self._pool.pop()
        except IndexError:  # another thread may have taken the last
            event = device.event()
        event.record()
        return event

    def _read(self) -> None:
        pending = self._pending
        while pending:
            batch = pending[0]
            done = batch.left is None or batch.left.query()
            if not done or not all(end.query() for _, end in batch.events):
                if len(pending) > MAX_PENDING:
                    pending.popleft()
                    continue
                return
            pending.popleft()
            self._many = batch.copies > MAX_TIMED_COPIES
            try:
                self._pool += batch.read()
            except Exception as error:
                if not is_ours(error):
                    raise
                self._untimed(f"the events of torch.{self._device.kind} carry no times: {error}")

    def read_again(self, batch: HandedOver) -> None:
        """It was copied once more after it was read."""
        self._pending.append(batch)

    # What is not to be had.

    def _tell(self, metric: str, reason: str) -> None:
        """Note why the device gives no such figure."""
        self._step.recorder.note(metric, reason)

    def no_pinning(self) -> None:
        self._tell(PINNED_REASON, f"torch.{self._device.kind} does not tell what is page-locked")

    def _untimed(self, reason: str) -> None:
        """Go on without events: copies are counted, not timed."""
        self._lacks = reason
        self._pending.clear()
        self._pool.clear()
        self._tell(REASON, reason)

    def _off(self, error: Exception) -> None:
        if not is_ours(error):
            raise error
        self._step.device = None
        self._forget()
        self._tell(REASON, _failed(error))


def _failed(error: Exception) -> str:
    return f"device events failed: {type(error).__name__}: {error}"
