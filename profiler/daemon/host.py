"""`host.json`: what stays the same for a whole run, and why some figures are missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from ..base.facts import FORMAT, CgroupFacts, GpuFacts, HostFacts
from ..base.host import allowed_cores, boot_id, both_clocks, host_name
from . import cgroup

T = TypeVar("T")


def facts(root: Path, container: cgroup.Cgroup, gpus: list[GpuFacts]) -> HostFacts:
    """Everything of `host.json` but the reasons. What is not known is None. Never raises."""
    shm = _known(lambda: os.statvfs(root / "dev/shm"))
    clocks, memory = both_clocks(), _known(psutil.virtual_memory)
    return HostFacts(
        format=FORMAT,
        host=host_name(),
        boot_id=boot_id(root / "proc/sys/kernel/random/boot_id"),
        clock_ns=clocks["clock_ns"],
        unix_ns=clocks["unix_ns"],
        cores_logical=os.cpu_count(),
        affinity=allowed_cores(),
        mem_total_bytes=memory.total if memory else None,
        shm_total_bytes=shm.f_blocks * shm.f_frsize if shm else None,
        cgroup=CgroupFacts(
            version=container.version,
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
