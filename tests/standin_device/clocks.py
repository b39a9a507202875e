"""What time it is for the stand-in: the machine's, or the program's own (docs/standin.md)."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int: ...

    def sleep_until(self, t_ns: int) -> None: ...


class WallClock:
    """The clock of this machine."""

    def now_ns(self) -> int:
        return time.monotonic_ns()  # as the profiler's

    def sleep_until(self, t_ns: int) -> None:
        while (left_ns := t_ns - self.now_ns()) > 0:
            # The last moment is waited for awake: a sleep ends some 60 µs late.
            time.sleep(max(0, left_ns - 200_000) / 1e9)


class SetClock:
    """Stands still until somebody waits."""

    t_ns = 1_000_000_000

    def now_ns(self) -> int:
        return self.t_ns

    def sleep_until(self, t_ns: int) -> None:
        self.t_ns = max(self.t_ns, t_ns)


class OwnTime:
    """CPU time of one thread, what it slept, and what it says it computed. Of the stand-in's own,
    `call_us` a call counts; what torch needs to call Python, up to `dispatch_ns`, does not."""

    def __init__(self, call_us: float = 3.0) -> None:
        self._call_ns = round(call_us * 1e3)
        self._shift_ns = time.monotonic_ns() - time.thread_time_ns()
        self._slept_ns = 0
        self._stopped_at_ns: int | None = None
        self._told = threading.local()  # a thread's CPU time when it was told last
        self.dispatch_ns = 0

    def now_ns(self) -> int:
        if self._stopped_at_ns is not None:
            return self._shift_ns + self._stopped_at_ns
        self._told.ns = time.thread_time_ns()
        return self._shift_ns + int(self._told.ns)

    def cpu_ns(self) -> int:
        """CPU time of the thread."""
        return self.now_ns() - self._slept_ns

    def sleep_until(self, t_ns: int) -> None:
        left_ns = max(0, t_ns - self.now_ns())
        self._slept_ns += left_ns
        self._shift_ns += left_ns

    def compute(self, milliseconds: float) -> None:
        """As if the thread computed for so long."""
        self._shift_ns += round(milliseconds * 1e6)

    @contextmanager
    def working(self, call: bool = True, dispatched: bool = False) -> Iterator[None]:
        """The stand-in is at work: no time passes but what it says, and what a `call` takes."""
        if self._stopped_at_ns is not None:
            yield
            return
        told_ns = getattr(self._told, "ns", 0)
        self._stopped_at_ns = max(told_ns, time.thread_time_ns() - self.dispatch_ns * dispatched)
        try:
            yield
        finally:
            self._told.ns = time.thread_time_ns()
            self._shift_ns += self._stopped_at_ns + self._call_ns * call - self._told.ns
            self._stopped_at_ns = None
