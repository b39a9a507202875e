"""When the stand-in does what; work has its end when it is issued, so the account is exact."""

import threading
from collections import Counter, deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from .clocks import Clock


@dataclass(frozen=True)
class Spec:
    """What the stand-in is like. Times of one link and one engine; there is one of each."""

    name: str = "Stand-in"
    link_gb_s: float = 12.0
    pageable_gb_s: float = 4.0  # copies out of ordinary memory, and into it
    copy_us: float = 8.0  # what any copy takes besides
    kernel_us: float = 5.0  # what any kernel takes
    device_gb_s: float = 1000.0  # and what it takes for the bytes it touches
    queue: int = 1024  # kernels and copies that may be under way; whoever issues more waits
    pin_us: float = 20.0  # page-locked memory out of the cache: a copy, on the CPU
    pin_gb_s: float = 6.0
    lock_us: float = 0.0  # and what locking anew takes, where the cache has no such block
    timed_events: bool = True
    lend: bool = False  # all copies to the device share the program's memory: it must not write to a batch again


@dataclass(frozen=True)
class Work:
    """One copy or kernel."""

    kind: str  # h2d, d2h, kernel
    name: str
    stream: int
    issued_ns: int
    start_ns: int
    end_ns: int
    nbytes: int = 0
    pinned: bool = False
    blocking: bool = False


def _at_work(call: bool = True, dispatched: bool = False) -> AbstractContextManager[None]:
    return nullcontext()


class Engine:
    """The device's side of things. Streams are numbers; 0 is the default one."""

    def __init__(self, spec: Spec, clock: Clock) -> None:
        self.spec = spec
        self.clock = clock
        # Around what the stand-in computes in the place of the device.
        self.working = getattr(clock, "working", _at_work)
        self.account: list[Work] = []
        self.synchronised = Counter[str]()  # how often the host waited, by what made it wait
        self._lock = threading.Lock()
        self._free_ns = {"link": 0, "engine": 0}
        self._ready_ns: dict[int, int] = {}  # a stream: when all that was issued to it will be done
        self._under_way: deque[int] = deque()

    # Work.

    def kernel(self, stream: int, took_ns: float, name: str) -> Work:
        """A kernel of this length, issued and not waited for."""
        return self._issue("kernel", name, stream, took_ns, "engine")

    def touch(self, stream: int, nbytes: int, name: str) -> Work:
        """A kernel as long as the bytes that it touches take."""
        took_ns = self.spec.kernel_us * 1e3 + nbytes / self.spec.device_gb_s
        return self.kernel(stream, took_ns, name)

    def copy(self, kind, stream, nbytes, pinned, blocking, issued_ns=None):
        """One that was issued a while ago takes at least until now, when the bytes were there."""
        gb_s = self.spec.link_gb_s if pinned else self.spec.pageable_gb_s
        took_ns = self.spec.copy_us * 1e3 + nbytes / gb_s
        if issued_ns is not None:
            took_ns = max(took_ns, self.clock.now_ns() - issued_ns)
        how = kind, "copy", stream, took_ns, "link", nbytes, pinned, blocking
        return self._issue(*how, issued_ns=issued_ns)

    def _issue(self, kind, name, stream, took_ns, unit, *of_a_copy, issued_ns=None) -> Work:
        with self._lock:
            now_ns = self.clock.now_ns() if issued_ns is None else issued_ns
            start_ns = max(now_ns, self._ready_ns.get(stream, 0), self._free_ns[unit])
            end_ns = start_ns + round(took_ns)
            self._ready_ns[stream] = self._free_ns[unit] = end_ns
            work = Work(kind, name, stream, now_ns, start_ns, end_ns, *of_a_copy)
            self.account.append(work)
            self._under_way.append(end_ns)
            while self._under_way and self._under_way[0] <= now_ns:
                self._under_way.popleft()
            full = len(self._under_way) > self.spec.queue
            oldest_ns = self._under_way.popleft() if full else 0
        if full:
            self.clock.sleep_until(oldest_ns)
        return work

    # Waiting.

    def reached_ns(self, stream: int) -> int:
        """When all that this stream was given will be done: what an event is stamped with."""
        return max(self.clock.now_ns(), self._ready_ns.get(stream, 0))

    def hold(self, stream: int, until_ns: int) -> None:
        """What the stream is given from now on begins no sooner: it waits for an event."""
        with self._lock:
            self._ready_ns[stream] = max(until_ns, self._ready_ns.get(stream, 0))

    def wait(self, until_ns: int, why: str) -> None:
        """The host waits for the device: a synchronisation, whether or not anything was left."""
        self.synchronised[why] += 1
        self.clock.sleep_until(until_ns)

    def all_done_ns(self) -> int:
        return max(self._ready_ns.values(), default=0)

    # The account.

    def busy_ns(self, begin_ns, end_ns):
        """For how long of this time it did anything."""
        spans = [(work.start_ns, work.end_ns) for work in self.account]
        busy = reached = 0
        for start, end in sorted((max(a, begin_ns), min(b, end_ns)) for a, b in spans):
            if end > max(start, reached):
                busy += end - max(start, reached)
                reached = end
        return busy
