"""A batch from its hand-over to the reading of its events: what is known of its copies, and where it is written."""

from __future__ import annotations

from itertools import chain
from typing import Protocol

from ..base import batch_record
from ..lanes.lane import Window
from .accelerator import Event
from .waits import Watch

# Copies of one batch that are bracketed by events of their own; of batches with more, one in SPARSE is.
MAX_TIMED_COPIES = 16
SPARSE = 16
# And of that one, no more than this: what has more is not timed.
MOST_TIMED_COPIES = 512


class Marking(Protocol):
    """What a batch needs of its clock (`device_clock.DeviceClock`)."""

    watch: Watch | None

    def mark(self) -> Event | None: ...

    def read_again(self, batch: HandedOver) -> None: ...

    def no_pinning(self) -> None: ...


class HandedOver:
    """What `copies` tells of copies of it."""

    __slots__ = (
        "_clock", "at", "blocking", "bytes", "copies", "copying_ns", "entered_before", "events", "handed", "host_ns",
        "left", "left_behind", "measured", "pinned", "timed", "wait_ns", "window", "written",
    )  # fmt: skip

    def __init__(self, clock: Marking, window: Window | None, at: int, wait_ns: int, timed: bool) -> None:
        self._clock = clock
        self.window = window
        self.at = at  # offset of its record
        self.wait_ns = wait_ns
        self.timed = timed  # its copies, one by one
        self.entered_before: Event | None = None  # N of the step before
        self.handed: Event | None = None  # H of this step
        self.left: Event | None = None  # N of this step
        self.events: list[tuple[Event, Event]] = []
        self.copies = self.bytes = self.host_ns = self.blocking = 0
        self.pinned: int | None = 0
        self.measured = self.copying_ns = 0  # copies of which the events were read, and what they came to
        self.written = self.left_behind = False

    def before_copy(self) -> Event | None:
        if self._clock.watch is not None:
            self._clock.watch.copied()
        if not self.timed or self.copies >= MOST_TIMED_COPIES:
            return None
        return self._clock.mark()

    def after_copy(self, start: Event | None, host_ns: int, nbytes: int, pinned: bool | None, blocking: bool) -> None:
        if start is not None:
            end = self._clock.mark()
            if end is not None:
                self.events.append((start, end))
        self.copies += 1
        self.bytes += nbytes
        self.host_ns += host_ns
        self.pinned = None if pinned is None or self.pinned is None else self.pinned + pinned
        self.blocking += blocking
        if self.left_behind:
            self.write_copies()
        if pinned is None:
            self._clock.no_pinning()

    def write_copies(self) -> None:
        """Write what is known of its copies: when the loop has gone on, and of each that another thread makes then."""
        self.left_behind = True
        if self.window is not None and self.copies:
            at = self.at
            patches = [
                batch_record.COPIES.patch(at, self.copies),
                batch_record.COPIES_HOST.patch(at, self.host_ns, self.bytes),
                batch_record.COPIES_WAYS.patch(at, -1 if self.pinned is None else self.pinned, self.blocking),
            ]
            if self.measured:
                patches.append(batch_record.COPIES_NS.patch(at, -1))  # until the new copy's events are read, too
            self.window.patch(patches)
        if self.written:
            self.written = False
            self._clock.read_again(self)

    def read(self) -> list[Event]:
        """Write what its events say, all of which have been reached; gives those that may be used again."""
        self.written = True  # a copy noticed from here on has it read again
        events, self.events = self.events, []
        before, handed, left = self.entered_before, self.handed, self.left
        self.entered_before = self.handed = self.left = None
        at = self.at
        measured: list[tuple[int, bytes]] = []
        if handed is not None and left is not None:
            measured.append(batch_record.DEVICE_COMPUTE.patch(at, _elapsed_ns(handed, left)))
        if before is not None and handed is not None:
            measured.append(batch_record.STALL.patch(at, min(_elapsed_ns(before, handed), self.wait_ns)))
        self.copying_ns += sum(_elapsed_ns(start, end) for start, end in events)
        self.measured += len(events)
        if self.copies == 0:
            measured.append(batch_record.COPIES.patch(at, 0))
        elif self.measured == self.copies:
            measured.append(batch_record.COPIES_NS.patch(at, self.copying_ns))
        if self.window is not None:
            self.window.patch(measured)
        # `left` is the next batch's `before`, and goes back with it.
        return [event for event in (before, handed, *chain(*events)) if event is not None]


def _elapsed_ns(start: Event, end: Event) -> int:
    return max(0, int(start.elapsed_time(end) * 1e6))
