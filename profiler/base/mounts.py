"""The kernel's table of mounts, and which file system a directory lies on. The only reader of that
table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

MOUNTINFO = "/proc/self/mountinfo"
MAX_BYTES = 4 << 20
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Entry(NamedTuple):
    """One line of the table: a mount point, and the type of its file system as the kernel names
    it."""

    path: str
    type: str


class Mounts:
    """The mounts of this process. The table is read at the first question, and again if a later
    mount must be missing."""

    def __init__(self, source: str = MOUNTINFO) -> None:
        self._source = source
        self._entries: dict[str, Entry] = {}

    def of(self, directory: str) -> Entry | None:
        """The mount of this absolute directory, None if the platform does not tell."""
        found = self._look_up(directory)
        if found is None or found.type == "autofs":  # mounted at its first use
            # Later mounts cover earlier ones.
            self._entries = {entry.path: entry for entry in table(self._source)}
            found = self._look_up(directory)
        return found

    def _look_up(self, path: str) -> Entry | None:
        while path not in self._entries and path != os.path.dirname(path):
            path = os.path.dirname(path)
        return self._entries.get(path)


def table(source: str | os.PathLike[str] = MOUNTINFO) -> Iterator[Entry]:
    """The mounts in a mountinfo file, in its order. None if there is no such file.

    The kernel writes blanks, newlines and backslashes in names as octal numbers, and all other
    bytes as they are. Names are decoded by `os.fsdecode`.
    """
    try:
        with open(source, "rb") as file:
            # `splitlines` would end a name at a carriage return.
            lines = file.read(MAX_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines:
        before, separator, after = line.partition(b" - ")
        fields = before.split(b" ")
        if separator and len(fields) > 4:
            path = _OCTAL.sub(lambda match: bytes([int(match[1], 8) & 255]), fields[4])
            yield Entry(os.fsdecode(path), os.fsdecode(after.split(b" ")[0]))
