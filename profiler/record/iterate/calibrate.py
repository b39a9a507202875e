"""What the hooks cost on this machine, measured with the hooks themselves, once per process (about
1 ms).

The measuring classes are driven over an iterator that does nothing, and compared with the bare one.
Further costs stand in each record's `own_ns`: those of detail, and of a lane that moves on to its
next window.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...base.clock import now_ns
from ...base.schema import BATCH, RECORD_BYTES
from ...guard.error_origin import forgiving
from ...native.layout import TIMES
from ...store.lanes.lane import WINDOW_AT, Budget, Lane
from ..transit.envelope import unwrap, wrap
from ..transit.fetchers import mark_collate
from .iteration import Iteration
from .iterators import instrumented

_BATCHES = 13  # fewer than SAMPLE_EVERY: none has detail
_ROUNDS = 12


class _Fetcher:
    def __init__(self) -> None:
        self.collate_fn: Callable[[Any], Any] = lambda data: data

    def fetch(self, index: Any) -> Any:
        return self.collate_fn(index)


class _IdleSingle:
    """The shape of torch's iterators, and none of their work."""

    _auto_collation = True
    _pin_memory = False
    _tasks_outstanding = _send_idx = _rcvd_idx = 0

    def __init__(self, message: bytes = b"") -> None:
        self._sampler_iter = itertools.repeat([0])
        self._dataset_fetcher = _Fetcher()
        self._message = message

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        index = self._next_index()
        data = self._dataset_fetcher.fetch(index)
        return None if self._pin_memory else data

    def __next__(self) -> Any:
        return self._next_data()


class _IdleMulti(_IdleSingle):
    """A batch arrives as the pickled message of a worker."""

    _worker_result_queue: Any = None  # how many batches wait in it is unknown

    def _reset(self) -> None: ...

    def _process_data(self, data: Any, worker: int) -> Any:
        self._next_index()
        return data

    def __next__(self) -> Any:
        from multiprocessing.reduction import ForkingPickler

        _, data = ForkingPickler.loads(self._message)
        return self._process_data(unwrap(data, 0), 0)


def _best_ns(call: Callable[[], Any], begin: Callable[[], None] = lambda: None) -> float:
    """ns per call, of the best round."""
    rounds = []
    for _ in range(_ROUNDS):
        begin()
        start = now_ns()
        for _ in range(_BATCHES):
            call()
        rounds.append((now_ns() - start) / _BATCHES)
    return min(rounds)


def _cost_ns(watched: Any, bare: Any) -> float:
    """What measuring adds to a batch of this iterator."""
    nobody: Any = None
    step = Iteration(nobody)
    lane = Lane(Path(), "calibration", BATCH, Budget(0), lambda text: None)
    lane.buf = bytearray(WINDOW_AT + 2 * _BATCHES * RECORD_BYTES)
    lane.capacity = 2 * _BATCHES
    step.take(lane)

    def begin() -> None:
        lane.count = 0
        step.detailed = step.special = False

    watched._ls = step
    watched._dataset_fetcher = mark_collate(watched._dataset_fetcher, step, marks_end=True)
    bare_ns = _best_ns(functools.partial(next, bare))
    return max(0.0, _best_ns(functools.partial(next, watched), begin) - bare_ns)


@functools.lru_cache(maxsize=2)
def hook_ns(workers: bool) -> float | None:
    """ns per batch in the training process; None if it could not be measured."""
    from multiprocessing.reduction import ForkingPickler

    with forgiving():
        if not workers:
            return _cost_ns(instrumented(_IdleSingle, quiet=False)(), _IdleSingle())
        enveloped = wrap(None, TIMES.pack(*[0] * 14))
        message, plain = (bytes(ForkingPickler.dumps((0, each))) for each in (enveloped, None))
        return _cost_ns(instrumented(_IdleMulti, quiet=False)(message), _IdleMulti(plain))
    return None
