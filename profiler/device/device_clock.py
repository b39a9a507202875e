"""Device time by events, never by waiting: events are recorded on the loop's own stream and read once they are done.

    next() entered       event N(k)      the device has been given all work of step k
    batch handed over    event H(k+1)    the loop is about to give it work of step k+1

Events are stamped by the device when it reaches them. N(k) → H(k+1) is therefore the time the device stood idle between
running out of work and the hand-over: the stall. H(k) → N(k) is its time on step k. Copies are bracketed by two events.

Only the stream current at those moments is seen; work on other streams is not: what is not measured is None.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from ..base import batch_record
from ..base.clock import now_ns
from ..guard.error_origin import is_ours
from ..lanes.lane import Lane, Window
from . import copies

if TYPE_CHECKING:
    import torch

    from ..session.session import Session

# Batches whose events are not done yet; beyond this the oldest are given up rather than held for ever.
MAX_PENDING = 256
# Copies of one batch that are bracketed by events of their own; of batches with more, one in SPARSE is.
MAX_TIMED_COPIES = 16
SPARSE = 16


def device_clock(step: Timed) -> DeviceClock | None:
    """A device clock, if the training code has set up CUDA (or ROCm) in this process; this never sets it up."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    recorder = step.recorder
    if recorder.session is not None:
        recorder.session.note_device(torch.cuda.get_device_name(torch.cuda.current_device()))
    copies.install()
    return DeviceClock(step, torch.cuda)


class Timed(Protocol):
    """What a clock needs of the iteration it times (`recorder.Iteration`)."""

    device: DeviceClock | None

    @property
    def recorder(self) -> Noting: ...


class Noting(Protocol):
    """What it needs of that loader's recorder."""

    @property
    def session(self) -> Session | None: ...

    def note(self, metric: str, reason: str) -> None: ...


class _Open:
    """A batch between its hand-over and the reading of its events."""

    __slots__ = (
        "at", "blocking", "bytes", "copies", "entered_before", "events", "handed", "host_ns", "left", "pinned",
        "sync", "timed", "wait_ns", "window",
    )  # fmt: skip

    def __init__(self, window: Window | None, at: int, wait_ns: int) -> None:
        self.window = window
        self.at = at  # offset of its record
        self.wait_ns = wait_ns
        self.entered_before: torch.cuda.Event | None = None  # N of the step before
        self.handed: torch.cuda.Event | None = None  # H of this step
        self.left: torch.cuda.Event | None = None  # N of this step
        self.events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.copies = self.bytes = self.host_ns = self.pinned = self.blocking = 0
        self.timed = True


class DeviceClock:
    """The device side of one iterator's records."""

    def __init__(self, step: Timed, cuda: Any) -> None:
        """`cuda` is `torch.cuda`, or something of the same shape."""
        self._cuda = cuda
        self._step = step
        self._device = cuda.current_device()
        self._pool: list[torch.cuda.Event] = []
        self._pending: deque[_Open] = deque()
        self._open: _Open | None = None
        self._entered: torch.cuda.Event | None = None
        self._t_entered = 0
        self._many = False  # the last batch had more copies than are timed one by one
        self._batches = 0

    # The three moments of a step. Called from hot paths: they catch what goes wrong and switch the clock off.

    def entered(self) -> None:
        """next() has been entered: all work of this step has been issued."""
        try:
            event = self._record()
            self._entered = event
            self._t_entered = now_ns()
            batch, self._open = self._open, None
            copies.forget(self)
            if batch is not None:
                batch.left = event
                self._pending.append(batch)
                self._read()
        except Exception as error:
            self._off(error)

    def handed_over(self, lane: Lane, n: int, data: Any) -> None:
        """The batch has been handed over; its record is number `n` of the lane's window."""
        try:
            self._batches += 1
            batch = _Open(lane.window, lane.at(n), now_ns() - self._t_entered)
            batch.entered_before, self._entered = self._entered, None
            batch.handed = self._record()
            batch.timed = not self._many or self._batches % SPARSE == 0
            self._open = batch
            copies.expect(self, data)
        except Exception as error:
            self._off(error)

    def drain(self) -> None:
        """Read whatever is done; the rest stays unmeasured."""
        copies.forget(self)
        self._read()

    # A copy of the batch, told by `copies`.

    def before_copy(self) -> torch.cuda.Event | None:
        batch = self._open
        if batch is None or not batch.timed or len(batch.events) >= 4 * MAX_TIMED_COPIES:
            return None
        return self._record()

    def after_copy(
        self, start: torch.cuda.Event | None, host_ns: int, nbytes: int, pinned: bool, blocking: bool
    ) -> None:
        batch = self._open
        if batch is None:
            return
        if start is not None:
            end = self._record()
            if end is not None:
                batch.events.append((start, end))
        batch.copies += 1
        batch.bytes += nbytes
        batch.host_ns += host_ns
        batch.pinned += pinned
        batch.blocking += blocking
        if batch.window is not None:
            at = batch.at
            batch.window.patch(
                [
                    batch_record.COPIES.patch(at, batch.copies),
                    batch_record.COPIES_HOST.patch(at, batch.host_ns, batch.bytes),
                    batch_record.COPIES_WAYS.patch(at, batch.pinned, batch.blocking),
                ]
            )

    # Events.

    def _record(self) -> torch.cuda.Event | None:
        cuda = self._cuda
        if cuda.current_device() != self._device:
            self._pool.clear()  # an event belongs to the device it was first recorded on
            self._device = cuda.current_device()
        if cuda.is_current_stream_capturing():
            return None  # an event recorded now would become part of the user's graph
        event = self._pool.pop() if self._pool else cuda.Event(enable_timing=True)
        event.record()
        return event

    def _read(self) -> None:
        pending = self._pending
        while pending:
            batch = pending[0]
            last = batch.left
            if last is not None and not last.query():
                if len(pending) > MAX_PENDING:
                    pending.popleft()
                    continue
                return
            pending.popleft()
            self._write(batch)

    def _write(self, batch: _Open) -> None:
        window, at = batch.window, batch.at
        if window is None:
            return
        measured: list[tuple[int, bytes]] = []
        self._many = batch.copies > MAX_TIMED_COPIES
        if batch.handed is not None and batch.left is not None:
            measured.append(batch_record.DEVICE_COMPUTE.patch(at, _elapsed_ns(batch.handed, batch.left)))
        if batch.entered_before is not None and batch.handed is not None:
            stall_ns = min(_elapsed_ns(batch.entered_before, batch.handed), batch.wait_ns)
            measured.append(batch_record.STALL.patch(at, stall_ns))
        if batch.copies == 0:
            measured.append(batch_record.COPIES.patch(at, 0))
        elif len(batch.events) == batch.copies:
            measured.append(batch_record.COPIES_NS.patch(at, sum(_elapsed_ns(a, b) for a, b in batch.events)))
        window.patch(measured)
        for a, b in batch.events:
            self._pool += [a, b]
        if batch.entered_before is not None:
            self._pool.append(batch.entered_before)
        if batch.handed is not None:
            self._pool.append(batch.handed)
        # `left` is the next batch's `entered_before`, and goes back with it.

    def _off(self, error: Exception) -> None:
        if not is_ours(error):
            raise error
        self._step.device = None
        copies.forget(self)
        self._step.recorder.note("h2d", f"device events failed: {type(error).__name__}: {error}")


def _elapsed_ns(start: torch.cuda.Event, end: torch.cuda.Event) -> int:
    return max(0, int(start.elapsed_time(end) * 1e6))
