"""This machine, as every part of a run names it and counts its cores."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .clock import now_ns


def host_name() -> str:
    """This machine's name, as processes, samplers and readers of one run compare it."""
    return os.uname().nodename


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str | None:
    """The id of this boot of this machine. None if the platform has no such id."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def both_clocks() -> dict[str, int]:
    """The run's clock and the wall clock at one moment, in ns: the try with the least time between
    the two."""
    tries = [(now_ns(), time.time_ns(), now_ns()) for _ in range(5)]
    before, unix, after = min(tries, key=lambda each: each[2] - each[0])
    return {"clock_ns": (before + after) // 2, "unix_ns": unix}


def allowed_cores() -> int | None:
    """Cores this process may run on, by its affinity. None if the platform does not tell."""
    try:
        return len(os.sched_getaffinity(0))
    except (OSError, AttributeError):  # macOS has no such call
        return None


def usable_cores() -> int:
    """The same, or all cores if unknown."""
    return allowed_cores() or os.cpu_count() or 1
