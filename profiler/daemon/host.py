"""`host.json`: what stays the same for a whole run, and why some figures are missing."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from ..base.host import allowed_cores, boot_id, both_clocks, host_name
from . import cgroup
from .gpu import Devices

FORMAT = 1


def facts(root: Path, container: cgroup.Cgroup, gpus: Devices | None) -> dict[str, object]:
    """Everything of `host.json` but the reasons. What is not known is None. Never raises."""
    return {
        "format": FORMAT,
        "host": host_name(),
        "boot_id": boot_id(root / "proc/sys/kernel/random/boot_id"),
        **both_clocks(),
        "cores_logical": os.cpu_count(),
        "cores_physical": _physical(),
        "affinity": allowed_cores(),
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
