"""Which file system a directory lies on, as the kernel's table of mounts has it."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

MOUNTINFO = "/proc/self/mountinfo"
MAX_BYTES = 4 << 20
_OCTAL = re.compile(rb"\\([0-7]{3})")


class MountPoint(NamedTuple):
    """Where a file system hangs, and its type as the kernel names it."""

    path: str
    type: str


class Mounts:
    """The mounts of this process, read when first asked for, and again where a later one must be missing."""

    def __init__(self, source: str = MOUNTINFO) -> None:
        self._source = source
        self._types: dict[str, str] = {}

    def of(self, directory: str) -> MountPoint | None:
        """The mount this absolute directory lies on; None where the platform does not tell."""
        found = self._look_up(directory)
        if found is None or found.type == "autofs":  # mounted when first used: the table read before lacks it
            self._types = _read(self._source)
            found = self._look_up(directory)
        return found

    def _look_up(self, directory: str) -> MountPoint | None:
        types = self._types
        if not types:
            return None
        path = directory
        while path not in types:
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent
        return MountPoint(path, types[path])


def _read(source: str) -> dict[str, str]:
    """Mount point → type. {} where there is no such table."""
    try:
        with open(source, "rb") as file:
            lines = file.read(MAX_BYTES).splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        before, separator, after = line.partition(b" - ")
        fields, types = before.split(b" "), after.split(b" ")
        if separator and len(fields) > 4:
            point = _OCTAL.sub(lambda match: bytes([int(match[1], 8) & 255]), fields[4])
            found[os.fsdecode(point)] = os.fsdecode(types[0])  # later mounts cover earlier ones
    return found
