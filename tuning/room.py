"""Whether more workers fit into the memory, shared memory and file descriptors that are left.

Settings that may not fit are not tried. Half of what is left stays for others.
"""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from operator import itemgetter

import psutil

from ..profiler.daemon.cgroup import find
from .evidence.settings import Settings

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
    """What is left; inf if that is not known."""

    memory_bytes: float
    shared_bytes: float
    files: float

    def shared_by(self, ranks: int) -> Room:
        """One rank's part. Each process has its own limit of open files."""
        return Room(self.memory_bytes / ranks, self.shared_bytes / ranks, self.files)


def room_left() -> Room:
    """Of this process, in its container."""
    return Room(_memory_left(), _shared_left(), _files_left())


def worker_bytes(pids: Iterable[int], forked: bool) -> float:
    """The memory of one worker: of the largest one running, or an estimate for the first."""
    workers = []
    for pid in pids:
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            workers.append((process.memory_info().rss, process))
    if workers:
        with suppress(psutil.Error, OSError):  # which takes 1 ms for each process
            return float(max(workers, key=itemgetter(0))[1].memory_full_info().uss)
    own = psutil.Process().memory_info().rss
    return max(LEAST_WORKER_BYTES, own * (FORKED_SHARE if forked else 1.0))


def why_no_room(
    settings: Settings, worker_bytes: float, batch: tuple[int, int], room: Room
) -> str | None:
    """Why a further pool with these settings may not fit; None if it does. `batch`: its bytes and
    tensors."""
    workers, ahead = settings.num_workers, settings.ahead
    batch_bytes, tensors = batch
    shared = ahead * batch_bytes
    memory = workers * worker_bytes + shared
    files = FILES_A_POOL + workers * FILES_A_WORKER + ahead * tensors + FILES_SPARE
    if not workers:
        return None
    if memory > SHARE * room.memory_bytes:
        return (
            f"its workers may take {_mb(memory)} of memory, and {_mb(room.memory_bytes)} are left"
        )
    if shared > SHARE * room.shared_bytes:
        left = _mb(room.shared_bytes)
        return f"its batches may take {_mb(shared)} of {SHARED_MEMORY}, and {left} are left"
    if files > room.files:
        return f"it may hold {files:.0f} files open, and {room.files} more are allowed"
    return None


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _memory_left() -> float:
    left, group = float(psutil.virtual_memory().available), find()
    if group.mem_limit_bytes is None or (used := group.memory_bytes()) < 0:
        return left
    return min(left, max(0.0, group.mem_limit_bytes - used + max(0, group.cached_bytes())))


def _shared_left() -> float:
    try:
        return float(shutil.disk_usage(SHARED_MEMORY).free)
    except OSError:
        return inf


def _files_left() -> float:
    try:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return inf if limit == resource.RLIM_INFINITY else limit - psutil.Process().num_fds()
    except (OSError, psutil.Error):
        return inf
