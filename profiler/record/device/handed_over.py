"""A batch of which the copies are looked at: what is known of them, and where it is written."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import Protocol

from ...base import batch_record
from ...store.lanes.lane import Window
from .accelerator import Event
from .waits import Watch

# Copies of one batch that are bracketed by events: what has more is counted, not timed.
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
        "_clock",
        "_thread",
        "at",
        "blocking",
        "bytes",
        "copies",
        "copying_ns",
        "events",
        "host_ns",
        "left_behind",
        "measured",
        "number",
        "pinned",
        "window",
        "written",
    )

    def __init__(self, clock: Marking, window: Window | None, at: int, number: int) -> None:
        self._clock = clock
        self.window = window
        self.at = at  # offset of its record
        self.number = number  # of the iteration's batches
        # Before and after a copy, what lies between them beside it, and what it took at most.
        self.events: list[tuple[Event, Event, int, int]] = []
        self._thread = get_ident()
        self.copies = self.bytes = self.host_ns = self.blocking = 0
        self.pinned: int | None = 0
        self.measured = self.copying_ns = (
            0  # copies of which the events were read, and what they came to
        )
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
        issuing_ns: int,
    ) -> None:
        end = self._clock.mark() if start is not None else None
        if start is not None and end is not None:
            beside, most = 0, sys.maxsize
            # An idle stream comes to `start` before the copy is issued. (In other threads nothing
            # is asked: one may be capturing a graph, which an answer to another would end.)
            idle = not blocking and self._thread == get_ident() and start.query()
            if blocking or (idle and pinned is False):
                most = max(1, host_ns - issuing_ns)  # the call takes as long as the copy
            elif idle:  # the copy began somewhere in the call, which does not wait for it
                beside = (issuing_ns + host_ns) // 2 if pinned else issuing_ns
            self.events.append((start, end, beside, most))
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
        """Write what is known of its copies: when the loop has gone on, and of each that another
        thread makes then."""
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
                patches.append(
                    batch_record.COPIES_NS.patch(at, -1)
                )  # until the new copy's events are read, too
            self.window.patch(patches)
        if self.written:
            self.written = False
            self._clock.read_again(self)

    def done(self) -> bool:
        """Whether the device has made the copies that are known so far."""
        return all(end.query() for _, end, *_ in self.events)

    def read(self) -> list[Event]:
        """Write what its events say, all of which have been reached; gives them back."""
        self.written = True  # a copy noticed from here on has it read again
        events, self.events = self.events, []
        for start, end, beside_ns, most_ns in events:
            self.copying_ns += min(max(0, elapsed_ns(start, end) - beside_ns), most_ns)
        self.measured += len(events)
        if self.copies and self.measured == self.copies and self.window is not None:
            self.window.patch([batch_record.COPIES_NS.patch(self.at, self.copying_ns)])
        return [event for start, end, *_ in events for event in (start, end)]


def elapsed_ns(start: Event, end: Event) -> int:
    return max(0, int(start.elapsed_time(end) * 1e6))
