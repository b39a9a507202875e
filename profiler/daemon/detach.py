"""Letting go: no terminal, no inherited files, no working directory, no claim on a core another
could use."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

NICENESS = 5


def detach(kept_fd: int | None = None) -> None:
    """Make this process nobody's: a session of its own, in the root folder, with no file open but
    /dev/null and `kept_fd`.

    SIGINT and SIGHUP are ignored (Ctrl-C is for the training, and its end is what ends the
    sampler); SIGTERM raises SystemExit(0). Never raises.
    """
    with suppress(OSError):  # already the leader of a session
        os.setsid()
    with suppress(OSError):
        os.chdir("/")
    _close_files(kept_fd)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    with suppress(OSError):
        os.nice(NICENESS)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: the way out must not be interrupted
    sys.exit(0)


def _close_files(kept_fd: int | None) -> None:
    with suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        if null > 2:
            os.close(null)
    try:
        inherited = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        inherited = list(range(3, 256))
    for fd in inherited:
        if fd > 2 and fd != kept_fd:
            with suppress(OSError):
                os.close(fd)
