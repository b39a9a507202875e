"""Time on the device by events, never by waiting: two a step, and two a copy of some batches. They
are recorded on the loop's own stream, and read once they are done (`step_log`).

Only the stream current at those moments is seen; work on other streams is not. A backend whose
events carry no times has its copies counted all the same; times then stay None, with the reason.

Every step is timed. Copies are looked at of a loop's first batches, and then of one batch in some
64, at distances that follow no rhythm of the loop: what is seen of a copy costs some microseconds,
which a step of a hundred cannot spare. Of long steps more are looked at, as long as that takes a
thousandth of the time.
"""

from __future__ import annotations

import random
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from ...guard.error_origin import is_ours
from ...native.form import StepMarks
from ..inspect.inspect_loader import inspection_wanted
from . import copies
from .accelerator import Accelerator, in_use
from .handed_over import HandedOver
from .step_log import StepLog, read_logs
from .waits import FIRST, STEPS, Watch

if TYPE_CHECKING:
    from ...store.lanes.lane import Window
    from ..session.session import Session

# From one batch whose copies are looked at to the next, once the loop's steps have been looked at
# closely.
APART = (32, 96)
# Or as soon as looking at the last one is a thousandth of the time since then: it takes so long,
# and so long a copy.
LOOK_NS, COPY_NS, SPARED = 15_000, 5_000, 1_000
# A thread of the program's may copy a batch when the loop has gone on; so many batches are
# remembered for it.
LATE = 4
# In slow loops events are read more often than steps are looked at, for those who look on.
READ_EVERY_NS = 100_000_000
# The reasons of a loader that say why there is nothing of the device, and why of pinning.
REASON, PINNED_REASON = "h2d", "h2d_pinned"
# Where a loader's JSON says what was seen of the steps that were looked at closely.
DEVICE_STEPS = "device_steps"


def device_clock(step: Timed) -> DeviceClock | None:
    """A device clock, if the training code has set up a device in this process; this never sets one
    up."""
    recorder = step.recorder
    try:
        device = in_use()
        if device is None:
            return None
        if isinstance(device, str):
            recorder.note(device, REASON)
            return None
        if recorder.session is not None:
            recorder.session.note_device(device.name())
        copies.install(device.kind)
        return DeviceClock(step, device)
    except Exception as error:
        if not is_ours(error):
            raise
        recorder.note(_failed(error), REASON)
        return None


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

    def note(self, reason: str, *figures: str) -> None: ...

    def write(self) -> None: ...


class DeviceClock(StepMarks):
    """The device side of one iterator's records. Its step calls `entered` and `handed_over`."""

    def __new__(cls, step: Timed, device: Accelerator) -> DeviceClock:
        return super().__new__(cls, device.event, device.current_device, device.capturing)

    def __init__(self, step: Timed, device: Accelerator) -> None:
        self.recorder = step.recorder
        self._device = device
        self._step_of = weakref.ref(
            step
        )  # an iterator that is dropped gives its lane back, whatever is left to read
        self._drained = False
        self._steps = StepLog(self)
        self._open: HandedOver | None = None
        self._recent: deque[HandedOver] = deque()
        self._random = random.Random(0)
        self._one_by_one = 0 if DEVICE_STEPS in self.recorder.facts else FIRST + STEPS
        # The batch to be looked at, at the latest, and when one would be sooner.
        self._next = 0 if self._one_by_one else self._random.randint(1, APART[1])
        self._next_ns = 0
        self.looking = self._next == 0
        self.watch: Watch | None = None  # while this loop's steps are looked at closely
        if device.lacks is not None:
            self._without_times(device.lacks)

    # Called by `entered` and `handed_over`, which pass on to `failed` what goes wrong.

    def due(self) -> None:
        """A step is over, and another begins, of which one or the other is looked at; or it is time
        to read."""
        if self._drained:  # workers that are kept: a new epoch of the same iterator
            self._drained = False
            self._steps.begin()
        looked, self._open = self._open, None
        if looked is not None:
            copies.leave(looked)
            looked.write_copies()
            self._next_ns = self.t_entered + SPARED * (LOOK_NS + COPY_NS * looked.copies)
            if self.watch is not None and self.watch.over():
                self._looked()
        self._steps.read()
        read_logs()
        batch = self.batches
        while self._recent and self._recent[0].number + LATE <= batch + 1:
            copies.forget(self._recent.popleft())
        self.looking = batch >= self._next or self.t_entered >= self._next_ns > 0
        if self.looking:
            self._next = batch + (
                1 if batch + 1 < self._one_by_one else self._random.randint(*APART)
            )
        until = batch + 1 if self.looking else self._next
        self.until = min(until, self._recent[0].number + LATE - 1) if self._recent else until
        self.until_ns = min(self.t_entered + READ_EVERY_NS, self._next_ns or sys.maxsize)

    def look(self, window: Window | None, at: int, data: Any) -> HandedOver:
        """This batch's copies will be looked at."""
        if self.batches == FIRST and DEVICE_STEPS not in self.recorder.facts:
            watch = Watch(self._device.kind, self._device.stream)
            self.watch = watch if watch.begin() else None
        batch = self._open = HandedOver(self, window, at, self.batches)
        self._recent.append(batch)
        copies.expect(batch, data)
        if self.watch is not None:
            self.watch.handed_over()
        return batch

    def failed(self, error: BaseException) -> None:
        """Time no more, unless the error is the user's."""
        if not is_ours(error):
            raise error
        step = self._step_of()
        if step is not None:
            step.device = None
        self.forget()
        self._tell(REASON, _failed(error))

    # The end of an iteration.

    def drain(self) -> None:
        """The iteration has ended. What is not done is read with the next one, or before the run is
        closed."""
        self.forget()
        self._steps.read()
        self._drained = True

    def over(self) -> bool:
        return self._drained or self._step_of() is None

    def forget(self) -> None:
        """Look for copies and waits no more."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()
        self._open, self.until = None, 0
        while self._recent:
            copies.forget(self._recent.popleft())

    def _looked(self) -> None:
        """The steps that were to be looked at are over."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()
            self.recorder.facts[DEVICE_STEPS] = watch.found(with_source=inspection_wanted())
            self.recorder.write()

    def read_again(self, batch: HandedOver) -> None:
        """It was copied once more after it was read."""
        self._steps.add(batch)

    # What is not to be had.

    def _tell(self, metric: str, reason: str) -> None:
        """Note why the device gives no such figure."""
        self.recorder.note(reason, metric)

    def no_pinning(self) -> None:
        self._tell(PINNED_REASON, f"torch.{self._device.kind} does not tell what is page-locked")

    def untimed(self, error: Exception) -> None:
        self._without_times(f"the events of torch.{self._device.kind} carry no times: {error}")

    def _without_times(self, reason: str) -> None:
        """Go on without events: copies are counted, not timed."""
        self.marking = False
        self.pool.clear()
        self._tell(REASON, reason)


def _failed(error: BaseException) -> str:
    return f"device events failed: {type(error).__name__}: {error}"
