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


class MountPoint(NamedTuple):
    """Where a file system hangs, and its type as the kernel names it."""

    path: str
    type: str


class Entry(NamedTuple):
    """One line of the table. `root` is which folder of the file system hangs there; `options` are
    the file system's."""

    path: str
    type: str
    root: str
    options: tuple[str, ...]


class Mounts:
    """The mounts of this process, read when first asked for, and again where a later one must be
    missing."""

    def __init__(self, source: str = MOUNTINFO) -> None:
        self._source = source
        self._types: dict[str, str] = {}

    def of(self, directory: str) -> MountPoint | None:
        """The mount this absolute directory lies on; None where the platform does not tell."""
        found = self._look_up(directory)
        if (
            found is None or found.type == "autofs"
        ):  # mounted when first used: the table read before lacks it
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
    return {entry.path: entry.type for entry in table(source)}  # later mounts cover earlier ones


def table(source: str | os.PathLike[str] = MOUNTINFO) -> Iterator[Entry]:
    """The mounts in a mountinfo file, in its order; none where there is no such file.

    The kernel writes blanks, newlines and backslashes in names as octal numbers and all else as it
    is: a name may hold any byte, and is given as `os.fsdecode` has it.
    """
    try:
        with open(source, "rb") as file:
            lines = file.read(MAX_BYTES).split(
                b"\n"
            )  # splitlines would end a name at a carriage return
    except OSError:
        return
    for line in lines:
        before, separator, after = line.partition(b" - ")
        fields, system = before.split(b" "), after.split(b" ")
        if separator and len(fields) > 4:
            options = system[2].decode("utf-8", "replace").split(",") if len(system) > 2 else []
            yield Entry(_name(fields[4]), os.fsdecode(system[0]), _name(fields[3]), tuple(options))


def _name(field: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8) & 255]), field))
