"""Which file system a directory lies on."""

from __future__ import annotations

import os
from typing import NamedTuple


class Entry(NamedTuple):
    """A mount point, and the type of its file system as the kernel names it."""

    path: str
    type: str


class Mounts:
    """The mounts of this process. They are read at the first question, and again if a later mount
    must be missing."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def of(self, directory: str) -> Entry | None:
        """The mount of this absolute directory, None if the platform does not tell."""
        found = self._look_up(directory)
        if found is None or found.type == "autofs":  # mounted at its first use
            # Later mounts cover earlier ones.
            self._entries = {entry.path: entry for entry in _table()}
            found = self._look_up(directory)
        return found

    def _look_up(self, path: str) -> Entry | None:
        while path not in self._entries and path != os.path.dirname(path):
            path = os.path.dirname(path)
        return self._entries.get(path)


def _table() -> list[Entry]:
    """In the kernel's order; empty where there is none."""
    import psutil

    try:
        return [Entry(each.mountpoint, each.fstype) for each in psutil.disk_partitions(all=True)]
    except (psutil.Error, OSError, ValueError):
        return []
