"""Whether more workers fit: memory, shared memory and file descriptors that are left, looked at
before any is started.

Nothing is tried that may not fit: of what is left, half is for what else may come.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from ..profiler.daemon.cgroup import find
from .settings import Settings

SHARE = 0.5
# A worker imports what the script does; forked, it shares most of that, but writes wherever it
# counts references.
LEAST_WORKER_BYTES = 200_000_000
FORKED_SHARE = 0.25
# Its queue and its process; the result queue; what others may open at any moment.
FILES_A_WORKER, FILES_A_POOL, FILES_SPARE = 4, 4, 64
SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Room:
    """What is left; None where that is not known, and then it holds nothing up."""

    memory_bytes: float | None
    shared_bytes: float | None
    files: int | None

    def shared_by(self, ranks: int) -> Room:
        """One rank's part, where all try the same at once. Open files are each process's own."""
        memory, shared = (
            None if left is None else left / ranks
            for left in (self.memory_bytes, self.shared_bytes)
        )
        return Room(memory, shared, self.files)


@dataclass(frozen=True)
class Load:
    """What workers of this loader take: a worker's own memory, a batch's bytes in shared memory,
    its tensors."""

    worker_bytes: float
    batch_bytes: float
    tensors: float


def room_left() -> Room:
    """Of this process, in its container."""
    return Room(_memory_left(), _shared_left(), _files_left())


def worker_bytes(pids: Iterable[int], forked: bool) -> float:
    """What one worker holds of its own: the largest of those at work, or what a first one may come
    to."""
    sizes = []
    for pid in pids:
        try:
            sizes.append(psutil.Process(pid).memory_full_info().uss)
        except (psutil.Error, OSError):
            continue
    if sizes:
        return float(max(sizes))
    own = psutil.Process().memory_info().rss
    return max(LEAST_WORKER_BYTES, own * (FORKED_SHARE if forked else 1.0))


def why_no_room(settings: Settings, load: Load, room: Room) -> str | None:
    """Why a pool with these settings may not fit beside the one at work; None where it does."""
    if not settings.num_workers:
        return None
    ahead = settings.num_workers * settings.prefetch_factor
    memory = settings.num_workers * load.worker_bytes
    shared = ahead * load.batch_bytes
    files = (
        FILES_A_POOL + settings.num_workers * FILES_A_WORKER + ahead * load.tensors + FILES_SPARE
    )
    if room.memory_bytes is not None and memory + shared > SHARE * room.memory_bytes:
        return (
            f"its workers may take {_mb(memory + shared)} of memory, and {_mb(room.memory_bytes)} "
            "are left"
        )
    if room.shared_bytes is not None and shared > SHARE * room.shared_bytes:
        return (
            f"its batches may take {_mb(shared)} of {SHARED_MEMORY}, and {_mb(room.shared_bytes)} "
            "are left"
        )
    if room.files is not None and files > room.files:
        return f"it may hold {files:.0f} files open, and {room.files} more are allowed"
    return None


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _memory_left() -> float | None:
    left = [float(psutil.virtual_memory().available)]
    group = find()
    if group.mem_limit_bytes is not None:
        used = group.memory_bytes()
        if used >= 0:
            left.append(max(0.0, group.mem_limit_bytes - used + max(0, group.cached_bytes())))
    return min(left)


def _shared_left() -> float | None:
    try:
        return float(shutil.disk_usage(SHARED_MEMORY).free)
    except OSError:
        return None


def _files_left() -> int | None:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return None if limit == resource.RLIM_INFINITY else limit - psutil.Process().num_fds()
    except (ImportError, OSError, psutil.Error):
        return None
