"""What this thread or process has read so far, as the kernel counts it."""

from __future__ import annotations

import os
import resource
from typing import NamedTuple

from ...guard.error_origin import forgiving

_FIELDS = (b"rchar:", b"wchar:", b"syscr:", b"syscw:", b"read_bytes:")


class Counters(NamedTuple):
    """Running totals, or what was read between two moments; -1 if not measured. `own` bytes were
    then read to get the totals."""

    read_bytes: int
    read_calls: int
    disk_bytes: int
    major_faults: int
    own: int = 0


def counters(whole_process: bool, proc: str = "/proc") -> Counters:
    """Of the whole process, or of this thread alone. Raises nothing."""
    who = resource.RUSAGE_SELF if whole_process else getattr(resource, "RUSAGE_THREAD", None)
    faults = resource.getrusage(who).ru_majflt if who is not None else -1
    with forgiving(OSError, ValueError):
        file = f"{proc}/{'self' if whole_process else 'thread-self'}/io"
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(handle, 512)
        finally:
            os.close(handle)
        fields = data.split()
        if tuple(fields[:10:2]) == _FIELDS:
            return Counters(int(fields[1]), int(fields[5]), int(fields[9]), faults, len(data))
    return Counters(-1, -1, -1, faults)


def between(first: Counters, last: Counters) -> Counters:
    """What was read from `first` to `last`, without our own reading of the counters."""
    faults = last.major_faults - first.major_faults if first.major_faults >= 0 else -1
    total = last.read_bytes - first.read_bytes - first.own
    # A kernel that counts at all has counted our own reading.
    if first.read_bytes < 0 or last.read_bytes < 0 or total < 0:
        return Counters(-1, -1, -1, faults)
    calls = max(0, last.read_calls - first.read_calls - 1)
    return Counters(total, calls, max(0, last.disk_bytes - first.disk_bytes), faults)
