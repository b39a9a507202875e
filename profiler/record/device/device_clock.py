"""Times the device by events, never by waiting: two per step, and two per copy of some batches.
They are recorded on the loop's stream, and read once they are reached (`step_log`).

Work on other streams is not seen. If a backend's events carry no times, copies are still counted,
and times stay None with a reason.

Every step is timed. Copies are observed for a loop's first batches, and then for one batch in about
64, at random distances, since observing one costs some microseconds.
"""

from __future__ import annotations

import random
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from ...guard.error_origin import is_ours
from ..inspect.inspect_loader import inspection_wanted
from . import copies
from .accelerator import Accelerator, in_use
from .handed_over import HandedOver
from .step_log import REASON, StepLog, keep_log, read_logs
from .waits import FIRST, STEPS, Watch

if TYPE_CHECKING:
    from ...store.lanes.lane import Window
    from ..iterate.iteration import Iteration

# The distance between batches whose copies are observed, after the loop's first steps.
APART = (32, 96)
# Batches that another thread of the program may copy after the loop has gone on.
LATE = 4
# In slow loops events are read more often than steps are observed, for live views.
READ_EVERY_NS = 100_000_000
# The key in a loader's JSON for what was seen of the observed steps.
DEVICE_STEPS = "device_steps"


def device_clock(step: Iteration) -> DeviceClock | None:
    """A device clock, if the program has initialised a device in this process."""
    recorder = step.recorder
    try:
        device = in_use()
        if device is None:
            return None
        if isinstance(device, str):
            recorder.note(device, REASON)
            return None
        if recorder.session is not None:
            recorder.session.update(device=device.name())
        copies.install(device.kind)
        return DeviceClock(step, device)
    except Exception as error:
        if not is_ours(error):
            raise
        recorder.note(_failed(error), REASON)
        return None


class DeviceClock(StepLog):
    """The device side of one iterator's records. Its step calls `entered` and `handed_over`."""

    def __new__(cls, step: Iteration, device: Accelerator) -> DeviceClock:
        return super().__new__(cls, device.event, device.current_device, device.capturing)

    def __init__(self, step: Iteration, device: Accelerator) -> None:
        super().__init__(step.recorder, device)
        # Weak, so that a dropped iterator returns its lane even if events are unread.
        self._step_of = weakref.ref(step)
        self._drained = False
        self._open: HandedOver | None = None
        self._recent: deque[HandedOver] = deque()
        self._random = random.Random(0)
        self._one_by_one = 0 if DEVICE_STEPS in self.recorder.facts else FIRST + STEPS
        # The next batch to observe.
        self._next = 0 if self._one_by_one else self._random.randint(1, APART[1])
        self.looking = self._next == 0
        self.watch: Watch | None = None  # while this loop's steps are observed
        if device.lacks is not None:
            self.without_events(device.lacks)
        keep_log(self)

    # Called by `entered` and `handed_over`, whose errors go to `failed`.

    def due(self) -> None:
        """One of two steps is observed, the one that ends or the one that begins; or it is time to
        read events."""
        if self._drained:  # persistent workers: a new epoch of the same iterator
            self._drained = False
            keep_log(self)
        looked, self._open = self._open, None
        if looked is not None:
            copies.leave(looked)
            looked.write_copies()
            watch = self.watch
            if watch is not None and watch.over():
                self._end_watch()
                self.recorder.facts[DEVICE_STEPS] = watch.found(with_source=inspection_wanted())
                self.recorder.write()
        self.read()
        read_logs()
        batch = self.batches
        while self._recent and self._recent[0].number + LATE <= batch + 1:
            copies.forget(self._recent.popleft())
        self.looking = batch >= self._next
        if self.looking:
            self._next = batch + (
                1 if batch + 1 < self._one_by_one else self._random.randint(*APART)
            )
        until = batch + 1 if self.looking else self._next
        self.until = min(until, self._recent[0].number + LATE - 1) if self._recent else until
        self.until_ns = self.t_entered + READ_EVERY_NS

    def look(self, window: Window | None, at: int, data: Any) -> HandedOver:
        """Observe the copies of this batch."""
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
        """Stop timing, unless the error is the user's."""
        if not is_ours(error):
            raise error
        step = self._step_of()
        if step is not None:
            step.device = None
        self.forget()
        self.recorder.note(_failed(error), REASON)

    # The end of an iteration.

    def drain(self) -> None:
        """The iteration has ended. Later events are read with the next one, or before the run is
        closed."""
        self.forget()
        self.read()
        self._drained = True

    def over(self) -> bool:
        return self._drained or self._step_of() is None

    def forget(self) -> None:
        """Look for copies and waits no more."""
        self._end_watch()
        self._open, self.until = None, 0
        while self._recent:
            copies.forget(self._recent.popleft())

    def _end_watch(self) -> None:
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()

    def pinning_unknown(self) -> None:
        reason = f"torch.{self._device.kind} does not tell what is page-locked"
        self.recorder.note(reason, "h2d_pinned")


def _failed(error: BaseException) -> str:
    return f"device events failed: {type(error).__name__}: {error}"
