"""The use of the machine and of the container, one sample at a time: from /proc where there is one,
else by psutil."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import psutil

from ..base.schema import MAX_CORES
from . import cgroup
from .procfs import PAGE_BYTES, TICKS, number_after, read, read_all
from .reasons import Reasons, said

NAN = math.nan
SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the disk's own
CGROUP_EVERY_NS = 5_000_000_000


class Machine:
    """Remembers the last sample's CPU times, from which shares are computed; the first sample has
    none."""

    def __init__(self, root: Path, reasons: Reasons, container: cgroup.Cgroup) -> None:
        self._root = root
        self._proc = str(root / "proc")
        self._shm_path = str(root / "dev/shm")
        self._reasons = reasons
        self._container = container
        self._container_due_ns = 0
        self._linux = sys.platform == "linux"
        self._times: dict[int, tuple[int, ...]] = {}  # -1 is all cores together
        self._counted: dict[str, bool] = {}  # disks and interfaces: whether they are hardware
        self.cores = min(MAX_CORES, self._highest_core() + 1)

    def sample(self, now_ns: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(fields of `machine` after t_ns, busy share a core in percent). Never raises."""
        cpu, busy, switches = self._cpu()
        total, available, swap, cached = self._memory()
        disk_read, disk_write = self._disks()
        received, sent = self._network()
        shm_total, shm_used = self._shm()
        throttled_ns, throttled, charged = self._cgroup(now_ns)
        machine = (
            *(
                total,
                available,
                swap,
                cached,
                disk_read,
                disk_write,
                received,
                sent,
                shm_total,
                shm_used,
            ),
            -1 if self._container.mem_limit_bytes is None else self._container.mem_limit_bytes,
            *(charged, throttled_ns, throttled, switches, _own_cpu_ns(), self._own_rss()),
            *cpu,
            NAN if self._container.cpu_quota is None else self._container.cpu_quota,
            self._load(),
        )
        return machine, busy

    def _highest_core(self) -> int:
        try:
            names = [line.split(b" ", 1)[0] for line in read_all(self._proc + "/stat").splitlines()]
            return max(
                int(name[3:]) for name in names if name.startswith(b"cpu") and name != b"cpu"
            )
        except (OSError, ValueError):
            return (os.cpu_count() or 1) - 1

    def _cpu(self) -> tuple[tuple[float, float, float, float], tuple[float, ...], int]:
        switches = -1
        try:
            if self._linux:
                times, switches = parse_cpu(read_all(self._proc + "/stat"))
            else:
                times = _psutil_cpu()
                switches = psutil.cpu_stats().ctx_switches
        except (OSError, ValueError, IndexError, psutil.Error) as error:
            self._reasons.add(
                f"CPU times cannot be read ({said(error)})", "cpu_user_pct", "busy_pct"
            )
            return (NAN, NAN, NAN, NAN), (NAN,) * self.cores, -1
        before, self._times = self._times, times
        parts = shares(before.get(-1), times.get(-1))
        busy = [NAN] * self.cores
        for core, now in times.items():
            if 0 <= core < self.cores:
                share = shares(before.get(core), now)
                busy[core] = 100.0 - share[2] - share[3]
        return parts, tuple(busy), switches

    def _memory(self) -> tuple[int, int, int, int]:
        try:
            if self._linux:
                text = read_all(self._proc + "/meminfo")
                total, available = (
                    number_after(text, b"MemTotal:"),
                    number_after(text, b"\nMemAvailable:"),
                )
                swap = number_after(text, b"\nSwapTotal:") - number_after(text, b"\nSwapFree:")
                # Shared memory is counted in with the page cache; batches in /dev/shm are no cache
                # of files.
                cached = number_after(text, b"\nCached:") - max(0, number_after(text, b"\nShmem:"))
                return total << 10, available << 10, max(0, swap) << 10, max(0, cached) << 10
            memory, swapped = psutil.virtual_memory(), psutil.swap_memory()
        except (OSError, ValueError, IndexError, psutil.Error) as error:
            sentence = f"the system does not tell its memory ({said(error)})"
            self._reasons.add(
                sentence,
                "mem_total_bytes",
                "mem_available_bytes",
                "swap_used_bytes",
                "page_cache_bytes",
            )
            return -1, -1, -1, -1
        self._reasons.add(f"{sys.platform} does not tell its page cache", "page_cache_bytes")
        return memory.total, memory.available, swapped.used, -1

    def _disks(self) -> tuple[int, int]:
        try:
            if self._linux:
                return self._linux_disks()
            counters = psutil.disk_io_counters()
        except (OSError, ValueError, IndexError, psutil.Error, RuntimeError) as error:
            sentence = f"disk counters cannot be read ({said(error)})"
            self._reasons.add(sentence, "disk_read_bytes", "disk_write_bytes")
            return -1, -1
        return (counters.read_bytes, counters.write_bytes) if counters else (-1, -1)

    def _linux_disks(self) -> tuple[int, int]:
        # Only hardware: partitions, RAID and LVM would count the same bytes again, loop devices
        # bytes of files.
        rows = [line.split() for line in read_all(self._proc + "/diskstats").splitlines()]
        disks = [row for row in rows if self._hardware("block", row[2].decode())]
        if not disks:
            sentence = (
                "no disk is visible here: a container that hides them, or only network storage"
            )
            self._reasons.add(sentence, "disk_read_bytes", "disk_write_bytes")
            return -1, -1
        return (
            sum(int(row[5]) for row in disks) * SECTOR_BYTES,
            sum(int(row[9]) for row in disks) * SECTOR_BYTES,
        )

    def _network(self) -> tuple[int, int]:
        try:
            if self._linux:
                rows = [
                    line.rpartition(b":")
                    for line in read_all(self._proc + "/self/net/dev").splitlines()[2:]
                ]
                numbers = {row[0].strip().decode(): row[2].split() for row in rows}
                counts = {name: (int(n[0]), int(n[8])) for name, n in numbers.items()}
            else:
                found = psutil.net_io_counters(pernic=True)
                counts = {name: (nic.bytes_recv, nic.bytes_sent) for name, nic in found.items()}
        except (OSError, ValueError, IndexError, psutil.Error) as error:
            self._reasons.add(
                f"network counters cannot be read ({said(error)})",
                "net_recv_bytes",
                "net_sent_bytes",
            )
            return -1, -1
        # Bridges and bonds would count the cards' bytes again; a container sees no card, only one
        # end of a pair.
        outward = [name for name in counts if not name.startswith("lo")]
        chosen = [name for name in outward if self._hardware("class/net", name)] or outward
        return sum(counts[name][0] for name in chosen), sum(counts[name][1] for name in chosen)

    def _hardware(self, kind: str, name: str) -> bool:
        key = f"{kind}/{name}"
        if key not in self._counted:
            self._counted[key] = (self._root / "sys" / key / "device").exists()
        return self._counted[key]

    def _shm(self) -> tuple[int, int]:
        try:
            shm = os.statvfs(self._shm_path)
        except (OSError, AttributeError) as error:
            self._reasons.add(
                f"there is no /dev/shm ({said(error)})", "shm_total_bytes", "shm_used_bytes"
            )
            return -1, -1
        return shm.f_blocks * shm.f_frsize, (shm.f_blocks - shm.f_bfree) * shm.f_frsize

    def _cgroup(self, now_ns: int) -> tuple[int, int, int]:
        try:
            if now_ns >= self._container_due_ns:  # limits can be changed while it runs
                self._container_due_ns = now_ns + CGROUP_EVERY_NS
                self._container = cgroup.find(self._root)
                explain(self._container, self._reasons)
            return *self._container.throttled(), self._container.memory_bytes()
        except (OSError, ValueError) as error:
            self._reasons.add(
                f"the cgroup cannot be read ({said(error)})",
                "cgroup_throttled_ns",
                "cgroup_mem_bytes",
            )
            return -1, -1, -1

    def _own_rss(self) -> int:
        try:
            if self._linux:
                return int(read("/proc/self/statm").split()[1]) * PAGE_BYTES
            return int(psutil.Process().memory_info().rss)
        except (OSError, ValueError, IndexError, psutil.Error):
            return -1

    def _load(self) -> float:
        try:
            return os.getloadavg()[0]
        except (OSError, AttributeError):
            return NAN


def explain(container: cgroup.Cgroup, reasons: Reasons) -> None:
    """Why the container's figures are missing, where they are."""
    none = "this system has no cgroup, or none is mounted"
    quota = "no CPU quota is set for this process's cgroup" if container.cpu else none
    limit = "no memory limit is set for this process's cgroup" if container.memory else none
    for metric, value, sentence in (
        ("cgroup_cpu_quota", container.cpu_quota, quota),
        ("cgroup_mem_limit_bytes", container.mem_limit_bytes, limit),
    ):
        if value is None:
            reasons.add(sentence, metric)
        else:
            reasons.drop(metric)
    if container.cpu is None:
        reasons.add(none, "cgroup_throttled_ns", "cgroup_nr_throttled")
    if container.memory is None:
        reasons.add(none, "cgroup_mem_bytes")


def parse_cpu(data: bytes) -> tuple[dict[int, tuple[int, ...]], int]:
    """/proc/stat as (core to (user, system, iowait, idle, other) in ticks, context switches since
    boot).

    Core -1 is all of them together. Time stolen by the hypervisor is `other`: it is neither used
    nor to be had.
    """
    times: dict[int, tuple[int, ...]] = {}
    for line in data.splitlines():
        if not line.startswith(b"cpu"):
            break
        name, user, nice, system, idle, *rest = line.split()
        iowait, irq, soft, steal = (int(value) for value in (rest + [b"0"] * 4)[:4])
        core = int(name[3:]) if len(name) > 3 else -1
        times[core] = (int(user) + int(nice), int(system) + irq + soft, iowait, int(idle), steal)
    return times, number_after(data, b"\nctxt")


def _psutil_cpu() -> dict[int, tuple[int, ...]]:
    times = {}
    for core, cpu in enumerate([psutil.cpu_times(), *psutil.cpu_times(percpu=True)], start=-1):
        parts = (
            cpu.user + getattr(cpu, "nice", 0.0),
            cpu.system,
            getattr(cpu, "iowait", 0.0),
            cpu.idle,
            0.0,
        )
        times[core] = tuple(int(part * TICKS) for part in parts)
    return times


def shares(
    before: tuple[int, ...] | None, now: tuple[int, ...] | None
) -> tuple[float, float, float, float]:
    """(user, system, iowait, idle) in percent of the time between two readings; NaN where there is
    none."""
    if before is None or now is None:
        return NAN, NAN, NAN, NAN
    # The kernel's idle and iowait may step back by a tick or two.
    gone = [max(0, new - old) for new, old in zip(now, before, strict=True)]
    whole = sum(gone)
    if not whole:
        return NAN, NAN, NAN, NAN
    return (
        100 * gone[0] / whole,
        100 * gone[1] / whole,
        100 * gone[2] / whole,
        100 * gone[3] / whole,
    )


def _own_cpu_ns() -> int:
    """CPU time of the sampler, and of the stack readers that have ended."""
    children = os.times()
    return time.process_time_ns() + int((children.children_user + children.children_system) * 1e9)
