"""Threads end before the interpreter does. One that it finds at work in C++ ends the process:
"terminate called"."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

# Between two tries: what is raised in a thread may be lost in it, in a `__del__` for one.
AGAIN_S = 0.2
# A file system that does not answer holds a thread for ever; it does no harm there.
PATIENCE_S = 20.0


class GivenUp(SystemExit):
    """Raised in a thread, between two steps of it, that is to end."""


class EndableThread(threading.Thread):
    """A thread whose work is given up by `end`."""

    def run(self) -> None:
        with suppress(GivenUp):
            self.work()

    def work(self) -> None:
        """What it is for; by default its target."""
        super().run()

    def end(self) -> None:
        """Give up what it is at, and wait until it has ended. Nothing where it has not begun."""
        import ctypes

        deadline = time.monotonic() + PATIENCE_S
        while self.is_alive() and time.monotonic() < deadline:
            assert self.ident is not None
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self.ident), ctypes.py_object(GivenUp)
            )
            self.join(AGAIN_S)
