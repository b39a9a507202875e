"""Making files cold without root, and proof that they are: Linux's page cache, asked file by
file."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

# Residency is asked of so many files: of thousands, evenly spread ones tell enough.
LOOKED_AT = 64

# Pages that may still be there (the kernel's own batches of pages in flight) in what is called
# cold.
COLD_BELOW = 0.05


def flush(paths: Sequence[Path]) -> None:
    """Have the files on the storage: only clean pages can be dropped. Raises OSError."""
    for (
        path
    ) in paths:  # first all begin to be written, so that one commit of the journal serves many
        _drop(path)
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_cold(paths: Sequence[Path]) -> str | None:
    """Drop the pages of exactly these files, which must be flushed and unmapped; None, or why that
    cannot be had."""
    if not hasattr(os, "posix_fadvise"):
        return "this platform cannot drop a file's pages"
    step = max(1, len(paths) // LOOKED_AT)
    share: float | None = None
    for _ in range(
        2
    ):  # pages read a moment ago may still be in a batch that the first call only moves on
        try:
            for path in paths:
                _drop(path)
            share = resident_share(paths[::step])
        except OSError as error:
            return f"the page cache cannot be dropped here ({error.strerror or error})"
        if share is None:
            return "this platform does not say what its page cache holds"
        if share <= COLD_BELOW:
            return None
    return f"after dropping, {share:.0%} of the pages were still in memory"


def resident_share(paths: Sequence[Path]) -> float | None:
    """The part of the files' pages that are in the page cache; None where the kernel does not say.
    Raises OSError."""
    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
    except (AttributeError, OSError, TypeError):
        return None
    mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    resident = pages = 0
    for path in paths:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                continue
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                view = np.frombuffer(mapped, np.uint8)
                told = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
                failed = mincore(view.ctypes.data, size, told.ctypes.data)
                del view  # a mapping cannot be closed while something looks at it
            if failed:
                return None
            resident += int((told & 1).sum())
            pages += len(told)
    return resident / pages if pages else 0.0


def _drop(path: Path) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
