"""One line per loader on standard error when a program ends that tunes in its code."""

from __future__ import annotations

import atexit
import os

from ..profiler.guard.error_origin import is_ours
from ..profiler.record.session import session as sessions
from ..profiler.store.run.tuning import read_tuning
from .tuner import Tuner

_drivers: dict[Tuner, tuple[str, int]] = {}  # with the loader's name, and the process that tunes it


def print_at_exit(driver: Tuner, name: str) -> None:
    """Print what was found for this loader, once."""
    if not _drivers:
        atexit.register(_print_all)
    _drivers.setdefault(driver, (name, os.getpid()))


def print_nothing() -> None:
    """Forget what was tuned so far."""
    atexit.unregister(_print_all)
    _drivers.clear()


def _print_all() -> None:
    """A line for each loader that was iterated over. The program has ended, so an error here must
    not reach it."""
    try:
        for driver, (name, pid) in _drivers.items():
            tuned = (
                read_tuning(*driver.record.place, [])
                if pid == os.getpid() and driver.record.place is not None
                else None
            )
            if tuned is not None and tuned.follows is None:
                from ..reports.words.tuned_words import said_at_end

                sessions.tell(said_at_end(name, tuned))
    except Exception as error:
        if not is_ours(error):
            raise
