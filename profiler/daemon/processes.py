"""The use of one process: CPU, memory, faults, switches, reads; rarely, its memory in detail."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import psutil

from .procfs import PAGE_BYTES, TICK_NS, number_after, read, read_stat
from .reasons import Reasons, said

NOT_READABLE = (OSError, ValueError, IndexError)
ENDED = b"ZXx"
REMEDY = {
    "io": ": run as the user who trains, and in a container with the capability SYS_PTRACE if the "
    "training changes its user",
    "fd": ": run as the user who trains",
    "smaps_rollup": ": it needs Linux 4.14 and the user who trains",
}
# Memory in detail is not read of a larger process: the kernel holds the process's memory map for 30
# to 50 ns a 4 KiB page, a quarter of a second at most.
LARGEST_BYTES = 20_000_000_000
T = TypeVar("T")


class Usage(NamedTuple):
    """One reading; -1 for what was not measured. Names and units as in the schema of the lane
    `process`."""

    cpu_user_ns: int
    cpu_system_ns: int
    rss_bytes: int
    major_faults: int
    read_disk_bytes: int
    read_all_bytes: int
    threads: int
    run_delay_ns: int
    children_cpu_ns: int


class Probe:
    """Reads /proc/PID. The start time tells a process from a later one of the same number."""

    def __init__(self, pid: int, reasons: Reasons) -> None:
        """Raises OSError, ValueError, IndexError or psutil.Error where there is no such process."""
        self.pid = pid
        self._reasons = reasons
        self._folder = f"/proc/{pid}/"
        stat = read_stat(pid)
        if stat.state in ENDED:
            raise ProcessLookupError(pid)
        self._start = stat.start
        self.ppid = stat.ppid
        self.create_time = psutil.Process(pid).create_time()  # s since 1970
        # The start time counts from boot with suspension, the run's clock without.
        suspended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        self.start_ns = stat.start * TICK_NS - suspended_ns  # on the run's clock
        self._silent: set[str] = set()  # files that do not tell of this process
        self.detailed_ns = 0  # when its memory was last read in detail

    def usage(self) -> Usage | None:
        """None once the process is gone, a zombie, or another one. Never raises."""
        try:
            stat = read_stat(self.pid)
        except NOT_READABLE:
            return None
        if stat.start != self._start or stat.state in ENDED:
            return None
        io = self._numbers(("read_disk_bytes", "read_all_bytes"), "io", b"\nread_bytes:", b"rchar:")
        delay = self._read(
            lambda: int(read(self._folder + "schedstat").split()[1]),
            -1,
            "schedstat",
            "run_delay_ns",
        )
        used = stat.user * TICK_NS, stat.system * TICK_NS, stat.rss_pages * PAGE_BYTES
        children = stat.children * TICK_NS
        return Usage._make((*used, stat.major_faults, *io, stat.threads, delay, children))

    def fds(self) -> int:
        """Open descriptors, -1 where not known. Never raises."""
        return self._read(lambda: len(os.listdir(self._folder + "fd")), -1, "fd", "fds")

    def detail(self) -> tuple[int, int]:
        """(USS, PSS) in bytes, -1 for what is not known. Never raises."""
        private = (b"\nPrivate_Clean:", b"\nPrivate_Dirty:", b"\nPrivate_Hugetlb:")
        pss, *own = self._numbers(("uss_bytes", "pss_bytes"), "smaps_rollup", b"\nPss:", *private)
        return (sum(max(0, kib) for kib in own) << 10, pss << 10) if pss >= 0 else (-1, -1)

    def _numbers(self, metrics: tuple[str, ...], file: str, *keys: bytes) -> list[int]:
        """The numbers after these keys in a file of the process; -1 where it does not tell."""

        def numbers() -> list[int]:
            text = read(self._folder + file)
            return [number_after(text, key) for key in keys]

        return self._read(numbers, [-1] * len(keys), file, *metrics)

    def _read(self, get: Callable[[], T], unknown: T, what: str, *metrics: str) -> T:
        """What `get` gives; `unknown` where it fails, with the reason, and not asked again."""
        if what in self._silent:
            return unknown
        try:
            return get()
        except NOT_READABLE as error:
            # A process that is ending gives errors too, which say nothing about the metric.
            if os.path.exists(self._folder + "stat"):
                self._silent.add(what)
                sentence = (
                    f"{what} of a process cannot be read ({said(error)}){REMEDY.get(what, '')}"
                )
                self._reasons.add(sentence, *metrics)
            return unknown


def probe(pid: int, reasons: Reasons) -> Probe | None:
    """The process `pid` as it is now; None where there is none, or only a zombie."""
    try:
        return Probe(pid, reasons)
    except (*NOT_READABLE, psutil.Error):
        return None
