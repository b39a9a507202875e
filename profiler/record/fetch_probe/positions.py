"""How far into the files that it has open this process is.

An open file has one position, which processes that are forked share: where fetching moves one,
workers that are forked after the file was opened would read each where another left off
(pytorch#11929).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from ...guard.error_origin import forgiving, is_ours

try:
    import fcntl
except ImportError:  # Windows, which does not fork
    fcntl = None  # type: ignore[assignment]

DESCRIPTORS = "/proc/self/fd"
STANDARD = 2  # input, output and errors are no data

Positions = dict[
    tuple[int, int], tuple[int, str]
]  # (descriptor, inode) → bytes from the beginning, path


def descriptors() -> Iterator[tuple[int, os.stat_result, int]]:
    """Of this process, but the standard ones: (number, what it is, the flags it was opened with).
    Nothing where the platform does not list them."""
    try:
        names = os.listdir(DESCRIPTORS) if fcntl is not None else []
    except OSError as error:
        if not is_ours(error):
            raise
        return
    for fd in map(int, names):
        if fd > STANDARD:
            with forgiving(OSError):  # the descriptor by which the folder itself was read
                yield fd, os.fstat(fd), fcntl.fcntl(fd, fcntl.F_GETFL)


def is_file(what: os.stat_result, flags: int, mode: int) -> bool:
    """Whether it is a file, opened in this mode and not to append to."""
    return stat.S_ISREG(what.st_mode) and flags & os.O_ACCMODE == mode and not flags & os.O_APPEND


def positions() -> Positions:
    """Of all files that are open for reading alone."""
    found: Positions = {}
    for fd, what, flags in descriptors():
        if is_file(what, flags, os.O_RDONLY):
            with forgiving(OSError):
                found[fd, what.st_ino] = (
                    os.lseek(fd, 0, os.SEEK_CUR),
                    os.readlink(f"{DESCRIPTORS}/{fd}"),
                )
    return found


def moved(before: Positions, after: Positions) -> set[str]:
    """The paths of what was open all the time and is elsewhere now."""
    return {path for each, (at, path) in after.items() if each in before and before[each][0] != at}
