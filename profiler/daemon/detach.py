"""Cutting the sampler loose: a session of its own, deaf to the terminal, and behind everybody else
for a core. Whoever starts it has closed its files and set its folder."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

NICENESS = 5


def detach() -> None:
    """SIGINT and SIGHUP are ignored (Ctrl-C is for the training, whose end ends the sampler);
    SIGTERM raises SystemExit(0). Never raises."""
    with suppress(OSError):  # already the leader of a session
        os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    with suppress(OSError):
        os.nice(NICENESS)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: the way out must not be interrupted
    sys.exit(0)
