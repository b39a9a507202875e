"""`host.json`: what stays the same for a whole run, and why some figures are missing."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil

from ..base.clock import now_ns
from ..base.liveness import boot_id
from . import cgroup
from .gpu import Devices

FORMAT = 1


def host_name() -> str:
    """This machine's name, as processes and samplers of one run compare it."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform

    return platform.node()


def both_clocks() -> dict[str, int]:
    """The run's clock and the wall clock at one moment, ns; of several tries the one with the least between them."""
    best = None
    for _ in range(5):
        before, unix, after = now_ns(), time.time_ns(), now_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, unix)
    assert best is not None
    return {"clock_ns": best[1], "unix_ns": best[2]}


def facts(root: Path, container: cgroup.Cgroup, gpus: Devices | None) -> dict[str, object]:
    """Everything of `host.json` but the reasons. What is not known is None. Never raises."""
    return {
        "format": FORMAT,
        "host": host_name(),
        "boot_id": boot_id(root / "proc/sys/kernel/random/boot_id"),
        **both_clocks(),
        "cores_logical": os.cpu_count(),
        "cores_physical": _physical(),
        "affinity": _affinity(),
        "mem_total_bytes": _memory(),
        "shm_total_bytes": _shm(root),
        "cgroup": {
            "version": container.version,
            "cpu_quota": container.cpu_quota,
            "mem_limit_bytes": container.mem_limit_bytes,
        },
        "gpus": gpus.facts() if gpus is not None else [],
    }


def _physical() -> int | None:
    try:
        return psutil.cpu_count(logical=False)
    except (OSError, ValueError, psutil.Error):
        return None


def _affinity() -> int | None:
    """Cores this process may run on; the sampler has inherited it from the training process that started it."""
    if sys.platform != "linux":
        return None
    try:
        return len(os.sched_getaffinity(0))
    except OSError:
        return None


def _memory() -> int | None:
    try:
        return int(psutil.virtual_memory().total)
    except (OSError, ValueError, psutil.Error):
        return None


def _shm(root: Path) -> int | None:
    try:
        shm = os.statvfs(root / "dev/shm")
    except (OSError, AttributeError):
        return None
    return shm.f_blocks * shm.f_frsize
