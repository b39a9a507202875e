"""Threads that end before the interpreter does. A thread that is still in C++ code at its end would
end the process with "terminate called"."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

# Between two tries: an error raised in a thread may be lost, for example in a `__del__`.
AGAIN_S = 0.2
# A file system that does not answer may hold a thread for ever. It does no harm there.
PATIENCE_S = 20.0


class GivenUp(SystemExit):
    """Raised in a thread that shall end, between two of its steps."""


class EndableThread(threading.Thread):
    """A thread that `end` interrupts."""

    def run(self) -> None:
        with suppress(GivenUp):
            self.work()

    def work(self) -> None:
        """The thread's work, by default its target."""
        super().run()

    def end(self) -> None:
        """Interrupt the work and wait for the end. Does nothing before the thread has begun."""
        import ctypes

        deadline = time.monotonic() + PATIENCE_S
        while self.is_alive() and time.monotonic() < deadline:
            assert self.ident is not None
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self.ident), ctypes.py_object(GivenUp)
            )
            self.join(AGAIN_S)
