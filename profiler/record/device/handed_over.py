"""A batch whose copies are looked at: what is known of them, and where it is written."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import TYPE_CHECKING

from ...base import batch_record
from ...store.lanes.lane import Window
from .accelerator import Event

if TYPE_CHECKING:
    from .device_clock import DeviceClock

# The copies of a batch that are timed by events. Further ones are only counted.
MOST_TIMED_COPIES = 512


class HandedOver:
    """Receives the copies of one batch from `copies`."""

    def __init__(self, clock: DeviceClock, window: Window | None, at: int, number: int) -> None:
        self._clock = clock
        self.window = window
        self.at = at  # offset of its record
        self.number = number  # of the iteration's batches
        # Before and after a copy, the time between that is not copying, and the most it can be.
        self.events: list[tuple[Event, Event, int, int]] = []
        self._thread = get_ident()
        self.copies = self.bytes = self.host_ns = self.blocking = 0
        self.pinned: int | None = 0
        self.measured = self.copying_ns = 0  # the copies whose events were read, and their time
        self.written = self.left_behind = False

    def before_copy(self) -> Event | None:
        if self._clock.watch is not None:
            self._clock.watch.copied()
        return self._clock.mark() if self.copies < MOST_TIMED_COPIES else None

    def after_copy(
        self,
        start: Event | None,
        host_ns: int,
        nbytes: int,
        pinned: bool | None,
        blocking: bool,
    ) -> None:
        end = self._clock.mark() if start is not None else None
        if start is not None and end is not None:
            before, most = 0, sys.maxsize
            # An idle stream reaches `start` before the copy is issued. (Other threads are not
            # asked: one may be capturing a graph, which a query would end.)
            idle = not blocking and self._thread == get_ident() and start.query()
            if blocking or (idle and pinned is False):
                most = host_ns  # the call takes as long as the copy
            elif idle and pinned:  # it began at some time in the call, which does not wait for it
                before = host_ns // 2
            self.events.append((start, end, before, most))
        self.copies += 1
        self.bytes += nbytes
        self.host_ns += host_ns
        self.pinned = None if pinned is None or self.pinned is None else self.pinned + pinned
        self.blocking += blocking
        if self.left_behind:
            self.write_copies()
        if pinned is None:
            self._clock.pinning_unknown()

    def write_copies(self) -> None:
        """Write what is known of its copies: when the loop goes on, and after each later copy."""
        self.left_behind = True
        if self.window is not None:
            at = self.at
            patches = [batch_record.COPIES.patch(at, self.copies)]
            if self.copies:
                patches += [
                    batch_record.COPIES_HOST.patch(at, self.host_ns, self.bytes),
                    batch_record.COPIES_WAYS.patch(
                        at, -1 if self.pinned is None else self.pinned, self.blocking
                    ),
                ]
            if self.measured:
                # Until the new copy's events are read too.
                patches.append(batch_record.COPIES_NS.patch(at, -1))
            self.window.patch(patches)
        if self.written:
            self.written = False
            self._clock.copied.append(self)

    def done(self) -> bool:
        """Whether the device has made all copies known so far."""
        return all(end.query() for _, end, *_ in self.events)

    def read(self) -> list[Event]:
        """Write the times of its events, all of which have been reached; returns them."""
        self.written = True  # a later copy has it read again
        events, self.events = self.events, []
        for start, end, before_ns, most_ns in events:
            self.copying_ns += min(max(0, elapsed_ns(start, end) - before_ns), most_ns)
        self.measured += len(events)
        if self.copies and self.measured == self.copies and self.window is not None:
            self.window.patch([batch_record.COPIES_NS.patch(self.at, self.copying_ns)])
        return [event for start, end, *_ in events for event in (start, end)]


def elapsed_ns(start: Event, end: Event) -> int:
    return max(0, int(start.elapsed_time(end) * 1e6))
