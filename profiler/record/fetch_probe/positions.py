"""The positions in this process's open files.

Forked processes share an open file's position. If fetching moves it, workers forked after the file
was opened would read where another one left off (pytorch#11929).
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator

from ...guard.error_origin import forgiving

DESCRIPTORS = "/proc/self/fd"
STANDARD = 2  # input, output and errors are no data

# (descriptor, inode) → bytes from the beginning, path
Positions = dict[tuple[int, int], tuple[int, str]]


def descriptors() -> Iterator[tuple[int, os.stat_result, int]]:
    """(number, status, flags) of this process's descriptors, except the standard ones. Nothing if
    the platform does not list them."""
    names: list[str] = []
    with forgiving(OSError):
        names = os.listdir(DESCRIPTORS)
    for fd in map(int, names):
        if fd > STANDARD:
            with forgiving(OSError):  # the descriptor by which the folder was read is closed
                yield fd, os.fstat(fd), fcntl.fcntl(fd, fcntl.F_GETFL)


def is_file(what: os.stat_result, flags: int, mode: int) -> bool:
    """Whether it is a file, opened in this mode and not to append to."""
    return stat.S_ISREG(what.st_mode) and flags & os.O_ACCMODE == mode and not flags & os.O_APPEND


def positions(mode: int = os.O_RDONLY) -> Positions:
    """Of all files that are open in this mode, by default for reading alone."""
    found: Positions = {}
    for fd, what, flags in descriptors():
        if is_file(what, flags, mode):
            with forgiving(OSError):
                path = os.readlink(f"{DESCRIPTORS}/{fd}")
                found[fd, what.st_ino] = os.lseek(fd, 0, os.SEEK_CUR), path
    return found


def moved(before: Positions, after: Positions) -> set[str]:
    """The paths of what was open all the time and is elsewhere now."""
    return {path for each, (at, path) in after.items() if each in before and before[each][0] != at}
