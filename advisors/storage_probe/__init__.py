"""Tries other layouts of a data set on a copy of a sample of its files, in a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .bounds import DEFAULT_BYTES, DEFAULT_FILES, DEFAULT_SECONDS, Bounds
from .probe_model import LayoutTrial, Rate, StorageProbe

if TYPE_CHECKING:
    from ...profiler.store.run.run import Run

__all__ = ["LayoutTrial", "Rate", "StorageProbe", "probe_storage"]


def probe_storage(
    source: Run | str | os.PathLike[str],
    *,
    max_bytes: int = DEFAULT_BYTES,
    max_files: int = DEFAULT_FILES,
    max_seconds: float = DEFAULT_SECONDS,
    temp: str | os.PathLike[str] | None = None,
    seed: int = 0,
    step: Callable[[], None] = lambda: None,
) -> StorageProbe:
    """Time the layouts on a sample of the files of `source`: a folder of data, or a run (value, id,
    path, "latest").

    Each layout takes at most `max_bytes`, the sample at most `max_files` files, and the probe about
    `max_seconds`. The same `seed` takes the same sample. The data is only read. The copies are in a
    new folder below `temp`, by default on the file system of the data, which is always removed.
    `step` is called after choosing, copying and timing.

    Raises UsageError (no files, no room, an invalid bound), RunNotFound and RunUnreadable.
    """
    from .run_probe import run_probe

    bounds = Bounds(max_bytes, max_files, max_seconds)
    return run_probe(source, bounds, Path(temp) if temp is not None else None, seed, step)
