"""The loop as it is, for long enough to predict what other settings would do; that is done beside
it, in a thread."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..profiler.base.endable_thread import EndableThread
from ..profiler.record.device.accelerator import Accelerator, in_use
from ..profiler.record.iterate.watch import loader_place
from ..profiler.record.session import session as sessions
from .candidates import Candidate, predicted_candidates, usual
from .settings import Settings
from .whole_batches import whole_batches

LOOK_BATCHES, LOOK_S = 60, 2.0  # before anything is predicted
LOOK_AT_MOST = 2000
PREDICT_S = 10.0  # no iteration waits longer for what is being predicted


class Look:
    """At one loader."""

    def __init__(self) -> None:
        self.began_ns = self.batches = 0
        self.found: list[Candidate] | None = None  # None until it is known
        self._predicting: EndableThread | None = None

    def handed(self, now_ns: int) -> bool:
        """A batch; whether that is enough."""
        self.batches += 1
        self.began_ns = self.began_ns or now_ns
        long = now_ns - self.began_ns >= LOOK_S * 1e9 and self.batches >= LOOK_BATCHES
        return long or self.batches >= LOOK_AT_MOST

    def step_s(self, now_ns: int) -> float:
        """How long a step took."""
        return (now_ns - self.began_ns) / self.batches / 1e9

    def predict(self, find: Callable[[], list[Candidate]]) -> None:
        """Begins to."""

        def work() -> None:
            self.found = find()

        sessions.flush()
        self._predicting = EndableThread(target=work, name="loaderscope predicts", daemon=True)
        self._predicting.start()
        atexit.register(self._predicting.end)  # the training may end first

    @property
    def predicting(self) -> bool:
        return self._predicting is not None

    def wait(self, timeout_s: float = PREDICT_S) -> None:
        """Workers are about to be forked, best where no other thread is at work."""
        if self._predicting is not None:
            self._predicting.join(timeout_s)


def candidates_for(
    loader: Any, own: Settings, cores: int, any_order: bool, batch_bytes: float
) -> list[Candidate]:
    """By what was recorded of the loader so far; the usual ones where that says nothing."""
    look_up_us: tuple[float, float] | None = None
    with suppress(Exception):  # most often NotArrays
        look_up_us = whole_batches(loader).cost_us(batch_bytes)
    place, session = loader_place(loader), sessions.current()
    with suppress(Exception):
        if place is not None and session is not None:
            device, orders = (
                isinstance(in_use(), Accelerator),
                any_order and hasattr(loader, "in_order"),
            )
            run, process, number = str(session.run_directory), str(place[0]), place[1]
            return predicted_candidates(
                run, process, number, own, device, cores, orders, look_up_us
            )
    return usual(own, cores, look_up_us is not None)
