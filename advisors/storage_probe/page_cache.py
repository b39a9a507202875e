"""Drops files from the page cache without root, and checks that they are gone."""

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
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())


def make_cold(paths: Sequence[Path]) -> str | None:
    """Drop the pages of these files, which must be flushed and unmapped. None, or why it failed."""
    try:
        for _ in range(2):  # the first call may only move pages that were read a moment ago
            for path in paths:
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        share = resident_share(paths[:: max(1, len(paths) // CHECKED_FILES)])
    except OSError as error:
        return f"the page cache cannot be dropped here ({error.strerror or error})"
    return f"{share:.0%} of the pages stayed in memory" if share > COLD_BELOW else None


def resident_share(paths: Sequence[Path]) -> float:
    """The part of the files' pages that are in the page cache. Raises OSError."""
    mincore = ctypes.CDLL(None).mincore
    mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    pages = [np.zeros(0, np.uint8)]
    for path in paths:
        if size := path.stat().st_size:
            view = np.memmap(path, np.uint8, "r")
            pages.append(np.zeros(-(-size // mmap.PAGESIZE), np.uint8))
            if mincore(view.ctypes.data, size, pages[-1].ctypes.data):
                raise OSError("mincore fails")
    return float((np.concatenate(pages) & 1).mean()) if len(pages) > 1 else 0.0
