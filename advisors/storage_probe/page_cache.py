"""Drops files from the page cache without root, and checks that they are gone."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

# Of thousands of files, this many evenly spread ones are checked.
CHECKED_FILES = 64
# Cold files may have this part of their pages in memory: some are in flight in the kernel.
COLD_BELOW = 0.05


def flush(paths: Sequence[Path]) -> None:
    """Flush the files to the storage: only clean pages can be dropped. Raises OSError."""
    # First all begin to be written, so that one commit of the journal serves many.
    for sync in (_drop, os.fsync):
        for path in paths:
            with path.open("rb") as file:
                sync(file.fileno())


def make_cold(paths: Sequence[Path]) -> str | None:
    """Drop the pages of these files, which must be flushed and unmapped. None, or why it failed."""
    share = 0.0
    for _ in range(2):  # the first call may only move pages that were read a moment ago
        try:
            for path in paths:
                with path.open("rb") as file:
                    _drop(file.fileno())
            share = resident_share(paths[:: max(1, len(paths) // CHECKED_FILES)])
        except OSError as error:
            return f"the page cache cannot be dropped here ({error.strerror or error})"
        if share <= COLD_BELOW:
            return None
    return f"after dropping, {share:.0%} of the pages were still in memory"


def resident_share(paths: Sequence[Path]) -> float:
    """The part of the files' pages that are in the page cache. Raises OSError."""
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    resident = pages = 0
    for path in paths:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                continue
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                view = np.frombuffer(mapped, np.uint8)
                found = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
                failed = mincore(view.ctypes.data, size, found.ctypes.data)
                del view  # a mapping cannot be closed while something looks at it
            if failed:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            resident += int((found & 1).sum())
            pages += len(found)
    return resident / pages if pages else 0.0


def _drop(handle: int) -> None:
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
