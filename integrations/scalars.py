"""Sends a live run's figures to TensorBoard, Weights & Biases, Prometheus, or any object with
`write(figures)` and `close()`.

    from loaderscope.integrations.scalars import TensorBoard, live

    with live(TensorBoard(writer)):
        train()

A thread reads the run directory every few seconds and passes new figures on. The training loop is
not involved. A failure is reported once, in one line, and tried again; nothing is raised into the
training. With ranks, rank 0 reports all ranks that record into its run, and `live` does nothing in
the others. A backend's library is imported only if its class is used. `loaderscope run --metrics`
does the same from outside of the training process.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..profiler.base.errors import RunUnreadable
from ..profiler.record.iterate.watch import watch_all
from ..profiler.record.session import session as sessions
from .live_figures import LiveFigures
from .scalar_backends import Prometheus as Prometheus
from .scalar_backends import TensorBoard as TensorBoard
from .scalar_backends import WandB as WandB

if TYPE_CHECKING:
    from .scalar_backends import Backend

EVERY_S = 10.0
# How long `stop` waits for the last figures, and a fork for a reading in progress.
PATIENCE_S, FORK_PATIENCE_S = 5.0, 1.0


def live(*backends: Backend, every_s: float = EVERY_S) -> Live:
    """Record every DataLoader of this process and pass its figures on, until `stop`, the end of the
    `with` block, or the end of the process."""
    watch_all()
    return Live(_own_run, backends, every_s)


class Live:
    """A thread that reads figures and passes them on. `run` returns the run directory, None while
    nothing has been recorded."""

    def __init__(
        self, run: Callable[[], Path | None], backends: Sequence[Backend], every_s: float = EVERY_S
    ) -> None:
        self._run, self._backends, self._every_s = run, backends, every_s
        self._figures: LiveFigures | None = None
        self._busy, self._ended = threading.Lock(), threading.Event()
        self._pid = os.getpid()
        os.register_at_fork(  # a child must not inherit a reading in progress
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._after_fork,
        )
        self._held = False
        self._thread = threading.Thread(
            target=self._run_thread, name="loaderscope-scalars", daemon=True
        )
        self._thread.start()
        atexit.register(self.stop)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Pass the last figures on and end. Safe to call twice."""
        atexit.unregister(self.stop)
        self._ended.set()
        if os.getpid() == self._pid:
            self._thread.join(PATIENCE_S)

    def _run_thread(self) -> None:
        while not self._ended.wait(self._every_s):
            self._pass_on()
        self._pass_on()
        for backend in self._backends:
            with _reporting(backend):
                backend.close()

    def _pass_on(self) -> None:
        # An unreadable run was removed, or does not exist yet.
        with self._busy, _reporting(self), suppress(RunUnreadable):
            run = self._run()
            if run is None:
                return
            self._figures = self._figures or LiveFigures(run)
            figures = self._figures.read()
            for backend in self._backends:
                with _reporting(backend):
                    backend.write(figures)

    def _before_fork(self) -> None:
        reads = os.getpid() == self._pid and not self._ended.is_set()
        self._held = reads and self._busy.acquire(timeout=FORK_PATIENCE_S)

    def _after_fork(self) -> None:
        if self._held:
            self._held = False
            self._busy.release()


def _own_run() -> Path | None:
    session = sessions.current()
    if session is None or session.facts.get("rank") not in (None, 0):
        return None
    return session.run_directory


@contextmanager
def _reporting(who: object) -> Iterator[None]:
    """Turns an error into one line."""
    try:
        yield
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        sessions.tell(f"{type(who).__name__} got no figures: {why}; training goes on")
