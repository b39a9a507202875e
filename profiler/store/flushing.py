"""A process that records registers here how its newest records reach their files, for readers in
the same process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_flush: list[Callable[[Path], None]] = []


def flush_with(flush: Callable[[Path], None]) -> None:
    """`flush(run_directory)` is called before a run is read."""
    if flush not in _flush:
        _flush.append(flush)


def flush(run_directory: Path) -> None:
    """Bring what this process has recorded into this run to its files."""
    for each in _flush:
        each(run_directory)
