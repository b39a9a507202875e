"""The use of one process: CPU, memory, faults, switches, reads. From /proc where there is one, by
psutil elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple, Protocol

import psutil

from .procfs import PAGE_BYTES, TICK_NS, number_after, parse_stat, read
from .reasons import Reasons, said


class Usage(NamedTuple):
    """One reading; -1 for what was not measured. Names and units as in the schema of the lane
    `process`."""

    cpu_user_ns: int = -1
    cpu_system_ns: int = -1
    rss_bytes: int = -1
    minor_faults: int = -1
    major_faults: int = -1
    ctx_voluntary: int = -1
    ctx_involuntary: int = -1
    read_disk_bytes: int = -1
    read_all_bytes: int = -1
    run_delay_ns: int = -1
    threads: int = -1


class Probe(Protocol):
    """One process, and no other that may get its number later."""

    pid: int
    create_time: float  # s since 1970, as psutil gives it
    start_ns: int | None  # on the run's clock, None where that cannot be told
    ppid: int

    def usage(self) -> Usage | None:
        """None once the process is gone, a zombie, or another one. Never raises."""

    def slow(self) -> tuple[int, int]:
        """(open descriptors, cores it may run on), -1 for what is not told. Never raises."""

    def detail(self) -> tuple[int, int]:
        """(USS, PSS) in bytes, -1 for what is not told. Never raises."""


class LinuxProbe:
    """Reads /proc/PID. What tells a process from a later one of the same number is its start
    time."""

    def __init__(self, pid: int, reasons: Reasons) -> None:
        """Raises OSError, ValueError or psutil.Error where there is no such process."""
        self.pid = pid
        self._reasons = reasons
        self._folder = f"/proc/{pid}"
        stat = parse_stat(read(self._folder + "/stat"))
        if stat.state in b"ZXx":
            raise ProcessLookupError(pid)
        self._start = stat.start
        self.ppid = stat.ppid
        self.create_time = psutil.Process(pid).create_time()
        # The start time counts from boot with suspension, the run's clock without.
        suspended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        self.start_ns: int | None = stat.start * TICK_NS - suspended_ns
        self._io = self._status = self._schedstat = True

    def usage(self) -> Usage | None:
        try:
            stat = parse_stat(read(self._folder + "/stat"))
        except (OSError, ValueError, IndexError):
            return None
        if stat.start != self._start or stat.state in b"ZXx":
            return None
        voluntary = involuntary = disk = everything = delay = -1
        if self._status:
            try:
                status = read(self._folder + "/status")
                voluntary = number_after(status, b"\nvoluntary_ctxt_switches:")
                involuntary = number_after(status, b"\nnonvoluntary_ctxt_switches:")
            except (OSError, ValueError, IndexError):
                self._status = self._gone(
                    "the kernel does not tell its context switches", "ctx_voluntary"
                )
        if self._io:
            try:
                io = read(self._folder + "/io")
                disk, everything = number_after(io, b"\nread_bytes:"), number_after(io, b"rchar:")
            except (OSError, ValueError, IndexError) as error:
                self._io = self._gone(
                    f"/proc/PID/io cannot be read ({said(error)}): run as the user who trains, and "
                    "in a container with the capability SYS_PTRACE if the training changes its "
                    "user",
                    "read_disk_bytes",
                    "read_all_bytes",
                )
        if self._schedstat:
            try:
                delay = int(read(self._folder + "/schedstat").split()[1])
            except (OSError, ValueError, IndexError):
                self._schedstat = self._gone(
                    "this kernel keeps no schedstat of a process", "run_delay_ns"
                )
        return Usage(
            stat.user * TICK_NS,
            stat.system * TICK_NS,
            stat.rss_pages * PAGE_BYTES,
            stat.minor_faults,
            stat.major_faults,
            voluntary,
            involuntary,
            disk,
            everything,
            delay,
            stat.threads,
        )

    def _gone(self, sentence: str, *metrics: str) -> bool:
        """Whether to try again: a process that is ending gives errors too, and says nothing about
        the metric."""
        if os.path.exists(self._folder + "/stat"):
            self._reasons.add(sentence, *metrics)
            return False
        return True

    def slow(self) -> tuple[int, int]:
        fds = cores = -1
        try:
            fds = len(os.listdir(self._folder + "/fd"))
        except OSError as error:
            self._gone(
                f"/proc/PID/fd cannot be read ({said(error)}): run as the user who trains", "fds"
            )
        try:
            cores = len(os.sched_getaffinity(self.pid))
        except OSError as error:
            self._gone(f"the affinity of a process cannot be read ({said(error)})", "affinity")
        return fds, cores

    def detail(self) -> tuple[int, int]:
        try:
            text = read(self._folder + "/smaps_rollup")
            private = (b"\nPrivate_Clean:", b"\nPrivate_Dirty:", b"\nPrivate_Hugetlb:")
            kib = sum(max(0, number_after(text, key)) for key in private)
            pss = number_after(text, b"\nPss:")
        except (OSError, ValueError, IndexError) as error:
            self._gone(
                f"/proc/PID/smaps_rollup cannot be read ({said(error)}): it needs Linux 4.14 and "
                "the user who trains",
                "uss_bytes",
                "pss_bytes",
            )
            return -1, -1
        return (kib * 1024, pss * 1024) if pss >= 0 else (-1, -1)


class PortableProbe:
    """The same by psutil, where there is no /proc."""

    def __init__(self, pid: int, reasons: Reasons) -> None:
        """Raises psutil.Error where there is no such process."""
        self.pid = pid
        self._reasons = reasons
        self._process = psutil.Process(pid)
        self.create_time = self._process.create_time()
        self.ppid = self._process.ppid()
        self.start_ns: int | None = None

    def usage(self) -> Usage | None:
        try:
            if not self._process.is_running() or self._process.status() == psutil.STATUS_ZOMBIE:
                return None
            with self._process.oneshot():
                cpu, memory = self._process.cpu_times(), self._process.memory_info()
                switches, threads = self._process.num_ctx_switches(), self._process.num_threads()
        except psutil.NoSuchProcess:
            return None
        except (psutil.Error, OSError, ValueError) as error:
            self._reasons.add(
                f"the system does not let a process be measured ({said(error)})", "process"
            )
            return Usage()
        self._reasons.add(
            f"{sys.platform} does not count it a process",
            *("read_disk_bytes", "read_all_bytes", "ctx_involuntary", "pss_bytes", "run_delay_ns"),
        )
        return Usage(
            int(cpu.user * 1e9),
            int(cpu.system * 1e9),
            memory.rss,
            int(getattr(memory, "pfaults", getattr(memory, "num_page_faults", -1))),
            int(getattr(memory, "pageins", -1)),
            switches.voluntary,
            threads=threads,
        )

    def slow(self) -> tuple[int, int]:
        try:
            fds = self._process.num_fds() if hasattr(self._process, "num_fds") else -1
            cores = self._process.cpu_affinity() if hasattr(self._process, "cpu_affinity") else None
        except (psutil.Error, OSError):
            return -1, -1
        return fds, len(cores) if cores else -1

    def detail(self) -> tuple[int, int]:
        try:
            full = self._process.memory_full_info()
        except (psutil.Error, OSError) as error:
            self._reasons.add(f"the system does not tell it ({said(error)})", "uss_bytes")
            return -1, -1
        return int(getattr(full, "uss", -1)), int(getattr(full, "pss", -1))


def probe(pid: int, reasons: Reasons) -> Probe | None:
    """The process `pid` as it is now; None where there is none, or only a zombie."""
    try:
        if sys.platform == "linux":
            return LinuxProbe(pid, reasons)
        return PortableProbe(pid, reasons)
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
