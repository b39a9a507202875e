"""Observes the loop with its own settings, then predicts other settings in a thread."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..advisors.whatif import WhatIf, workload_of
from ..profiler.base.endable_thread import EndableThread
from ..profiler.record.device.accelerator import Accelerator, in_use
from ..profiler.record.iterate.watch import current_run_directory, loader_place
from ..profiler.record.session import session as sessions
from ..profiler.store.run.run_reader import open_run
from .candidates import Candidate, ordered, usual
from .evidence.settings import Settings

LOOK_BATCHES, LOOK_S = 60, 2.0  # before anything is predicted
LOOK_AT_MOST = 2000
PREDICT_S = 10.0  # no iteration waits longer for what is being predicted


class Look:
    """At one loader."""

    def __init__(self) -> None:
        self.began_ns = self.batches = 0
        self.found: list[Candidate] | None = None  # None until it is known
        self._thread: EndableThread | None = None

    def handed(self, now_ns: int) -> bool:
        """Count a batch; True if there are enough."""
        self.batches += 1
        self.began_ns = self.began_ns or now_ns
        long = now_ns - self.began_ns >= LOOK_S * 1e9 and self.batches >= LOOK_BATCHES
        return long or self.batches >= LOOK_AT_MOST

    def step_s(self, now_ns: int) -> float:
        """The mean time of a step."""
        return (now_ns - self.began_ns) / self.batches / 1e9

    def predict(self, find: Callable[[], list[Candidate]]) -> None:
        """Start predicting."""

        def work() -> None:
            self.found = find()

        sessions.flush()
        self._thread = EndableThread(target=work, name="loaderscope predicts", daemon=True)
        self._thread.start()
        atexit.register(self._thread.end)  # the training may end first

    @property
    def predicting(self) -> bool:
        return self._thread is not None

    def wait(self) -> None:
        """Wait before workers are forked: no other thread should be running then."""
        if self._thread is not None:
            self._thread.join(PREDICT_S)


def candidates_for(loader: Any, own: Settings, cores: int) -> list[Candidate]:
    """The candidates from what was recorded so far, the most promising first; the usual ones if
    that is too little."""
    with suppress(Exception):  # most often TooLittle
        place = loader_place(loader)
        assert place is not None
        run = open_run(str(current_run_directory()))
        process = next(each for each in run.processes if each.path == place[0])
        recorded = next(each for each in process.loaders if each.index == place[1])
        model = WhatIf(workload_of(run, process, recorded))
        return ordered(own, isinstance(in_use(), Accelerator), model.predict, cores)
    return usual(own, cores)
