"""The machine and its container: what stays the same for a whole run, and their use, one sample at
a time, from /proc and cgroup files. Where there are none, nothing is measured, and each figure has
a reason."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from ..base.facts import FORMAT, CgroupFacts, GpuFacts, HostFacts
from ..base.host import allowed_cores, boot_id, both_clocks, host_name
from ..base.schema import MACHINE
from . import cgroup
from .procfs import PAGE_BYTES, number_after, read, read_all
from .reasons import Reasons, said

NAN = math.nan
UNKNOWN: tuple[float, ...] = (NAN, NAN, NAN, NAN)
SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the disk's own
CGROUP_EVERY_NS = 5_000_000_000

METRICS = [field.name for field in MACHINE.fields[2:]]
T = TypeVar("T")


class Machine:
    """Keeps the last sample's CPU times: shares are of the time between two samples, so the first
    sample has none."""

    def __init__(self, root: Path, reasons: Reasons) -> None:
        self._root = root
        self._proc = str(root / "proc")
        self._reasons = reasons
        self._look_up(0)
        self._times: tuple[int, ...] = ()
        self._counted: dict[str, bool] = {}  # disks and interfaces: whether they are hardware

    def sample(self, now_ns: int) -> tuple[float, ...]:
        """The fields of `machine` after t_ns. Never raises."""
        measured: list[float] = []
        for part, what, count in (
            (self._memory, "memory", 3),
            (self._disks, "disk counters", 2),
            (self._network, "network counters", 2),
            (self._shm, "/dev/shm", 2),
            (lambda: self._cgroup(now_ns), "the cgroup", 3),
        ):
            metrics = METRICS[len(measured) : len(measured) + count]
            measured += self._read(part, (-1,) * count, what, metrics)
        parts = self._read(self._cpu, UNKNOWN, "CPU times", ("cpu_user_pct",))
        rss = self._read(lambda: int(read("/proc/self/statm").split()[1]) * PAGE_BYTES, -1)
        quota = self.container.cpu_quota
        return (*measured, _own_cpu_ns(), rss, *parts, NAN if quota is None else quota)

    def _look_up(self, now_ns: int) -> None:
        self._container_due_ns = now_ns + CGROUP_EVERY_NS
        self.container = cgroup.find(self._root)
        explain(self.container, self._reasons)

    def _read(
        self, get: Callable[[], T], unknown: T, what: str = "", metrics: Sequence[str] = ()
    ) -> T:
        """What `get` gives; `unknown` where it fails, with the reason for these metrics."""
        try:
            return get()
        except (OSError, ValueError, IndexError) as error:
            self._reasons.add(f"{what} cannot be read ({said(error)})", *metrics)
            return unknown

    def _cpu(self) -> tuple[float, ...]:
        before, self._times = self._times, parse_cpu(read(self._proc + "/stat"))
        return shares(before, self._times)

    def _memory(self) -> tuple[int, ...]:
        # By hand: psutil counts shared memory, such as batches in /dev/shm, among the page cache.
        text = read_all(self._proc + "/meminfo")
        total, available, cached, shared = (
            number_after(text, key)
            for key in (b"MemTotal:", b"\nMemAvailable:", b"\nCached:", b"\nShmem:")
        )
        return total << 10, available << 10, max(0, cached - max(0, shared)) << 10

    def _disks(self) -> tuple[int, ...]:
        # Only hardware: partitions, RAID and LVM would count the same bytes again, loop devices
        # bytes of files.
        rows = [line.split() for line in read_all(self._proc + "/diskstats").splitlines()]
        disks = [row for row in rows if self._hardware("block", row[2].decode())]
        if not disks:
            sentence = "no disk is visible: a container hides them, or all storage is remote"
            self._reasons.add(sentence, "disk_read_bytes", "disk_write_bytes")
            return -1, -1
        return tuple(sum(int(row[at]) for row in disks) * SECTOR_BYTES for at in (5, 9))

    def _network(self) -> tuple[int, ...]:
        lines = read_all(self._proc + "/self/net/dev").splitlines()[2:]
        rows = [line.rpartition(b":") for line in lines]
        counts = {row[0].strip().decode(): row[2].split() for row in rows}
        # Bridges and bonds would count the cards' bytes again; a container sees no card, only one
        # end of a pair.
        outward = [name for name in counts if not name.startswith("lo")]
        chosen = [name for name in outward if self._hardware("class/net", name)] or outward
        return tuple(sum(int(counts[name][at]) for name in chosen) for at in (0, 8))

    def _hardware(self, kind: str, name: str) -> bool:
        key = f"{kind}/{name}"
        if key not in self._counted:
            self._counted[key] = (self._root / "sys" / key / "device").exists()
        return self._counted[key]

    def _shm(self) -> tuple[int, ...]:
        shm = os.statvfs(self._root / "dev/shm")
        return shm.f_blocks * shm.f_frsize, (shm.f_blocks - shm.f_bfree) * shm.f_frsize

    def _cgroup(self, now_ns: int) -> tuple[int, ...]:
        if now_ns >= self._container_due_ns:  # limits can be changed while it runs
            self._look_up(now_ns)
        here, limit = self.container, self.container.mem_limit_bytes
        return -1 if limit is None else limit, here.memory_bytes(), here.throttled_ns()


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
        reasons.add(none, "cgroup_throttled_ns")
    if container.memory is None:
        reasons.add(none, "cgroup_mem_bytes")


def parse_cpu(data: bytes) -> tuple[int, ...]:
    """/proc/stat as (user, system, iowait, idle, other) of all cores, in ticks.

    Time stolen by the hypervisor is `other`: it is neither used nor to be had.
    """
    _, user, nice, system, idle, *rest = data.split(b"\n", 1)[0].split()
    iowait, irq, soft, steal = (int(value) for value in (rest + [b"0"] * 4)[:4])
    return int(user) + int(nice), int(system) + irq + soft, iowait, int(idle), steal


def shares(before: tuple[int, ...], now: tuple[int, ...]) -> tuple[float, ...]:
    """(user, system, iowait, idle) in percent of the time between two readings; NaN where there is
    none."""
    # The kernel's idle and iowait may step back by a tick or two.
    gone = [max(0, new - old) for new, old in zip(now, before, strict=False)]
    whole = sum(gone)
    return tuple(100 * part / whole for part in gone[:4]) if whole else UNKNOWN


def _own_cpu_ns() -> int:
    """CPU time of the sampler, and of the stack readers that have ended."""
    children = os.times()
    return time.process_time_ns() + int((children.children_user + children.children_system) * 1e9)


def facts(container: cgroup.Cgroup, gpus: list[GpuFacts]) -> HostFacts:
    """Everything of `host.json` but the reasons. What is not known is None. Never raises."""
    shm = _known(lambda: os.statvfs("/dev/shm"))
    clocks, memory = both_clocks(), _known(psutil.virtual_memory)
    return HostFacts(
        format=FORMAT,
        host=host_name(),
        boot_id=boot_id(),
        clock_ns=clocks["clock_ns"],
        unix_ns=clocks["unix_ns"],
        cores_logical=os.cpu_count(),
        affinity=allowed_cores(),
        mem_total_bytes=memory.total if memory else None,
        shm_total_bytes=shm.f_blocks * shm.f_frsize if shm else None,
        cgroup=CgroupFacts(
            cpu_quota=container.cpu_quota,
            mem_limit_bytes=container.mem_limit_bytes,
        ),
        gpus=tuple(gpus),
    )


def _known(get: Callable[[], T]) -> T | None:
    try:
        return get()
    except (OSError, ValueError, psutil.Error):
        return None
