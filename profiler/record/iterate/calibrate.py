"""What the hooks cost on this machine, measured with the hooks themselves, once a process (about 2
ms).

The real instrumented classes are driven over an iterator that does nothing, beside the bare one.
What a record looked at in detail costs beyond that is measured on the spot and stands in its
`own_ns`, and so does what it costs that a lane moves on to its next window, some hundred
microseconds once in some hundred batches.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

from ...base.clock import now_ns
from ...base.schema import BATCH, RECORD_BYTES
from ...store.lanes.lane import WINDOW_AT, Budget, Lane
from ..transit.envelope import unwrap
from .iteration import Iteration
from .iterators import instrumented
from .recorder import Recorder

_BATCHES = 15  # fewer than SAMPLE_EVERY: none is looked at in detail
_ROUNDS = 12


class _Fetcher:
    def __init__(self) -> None:
        self.collate_fn = _itself

    def fetch(self, index: Any) -> Any:
        return self.collate_fn(index)


def _itself(data: Any) -> Any:
    return data


class _IdleSingle:
    """The shape of torch's single-process iterator, and none of its work."""

    _auto_collation = True
    _pin_memory = False
    _dataset = None

    def __init__(self) -> None:
        self._sampler_iter = itertools.repeat([0])
        self._dataset_fetcher = _Fetcher()

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        index = self._next_index()
        data = self._dataset_fetcher.fetch(index)
        return None if self._pin_memory else data

    def __next__(self) -> Any:
        return self._next_data()


class _IdleQueue:
    def qsize(self) -> int:
        return 0


class _HeldQueue:
    """A queue of one message, at both ends of a worker."""

    message: Any = (0, [0])

    def get(self) -> Any:
        return 0, [0]

    def put(self, message: Any) -> None:
        self.message = message


class _IdleMulti:
    """The shape of torch's multi-process iterator; the batch arrives as the pickled message a
    worker sends."""

    _auto_collation = True
    _pin_memory = False
    _num_workers = 1
    _tasks_outstanding = _send_idx = _rcvd_idx = 0
    _worker_result_queue = _IdleQueue()

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._sampler_iter = itertools.repeat([0])

    def _reset(self, loader: Any, first_iter: bool = False) -> None: ...

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _process_data(self, data: Any, worker: int) -> Any:
        self._next_index()
        return data

    def __next__(self) -> Any:
        from multiprocessing.reduction import ForkingPickler

        _, data = ForkingPickler.loads(self._message)
        return self._process_data(unwrap(data, 0), 0)


def _scratch_step() -> Iteration:
    step = Iteration(Recorder("calibration", {}))
    lane = Lane(Path(), "calibration", BATCH, Budget(0), lambda text: None)
    lane.buf = bytearray(WINDOW_AT + 2 * _BATCHES * RECORD_BYTES)
    lane.capacity = 2 * _BATCHES
    step.take(lane)
    return step


def _ns_a_batch(iterator: Any, step: Iteration | None) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        if step is not None:
            step.lane.count = 0
            step.detailed = step.special = False
        start = now_ns()
        for _ in range(_BATCHES - 2):
            next(iterator)
        best = min(best, (now_ns() - start) / (_BATCHES - 2))
    return best


def _single_ns() -> float:
    from ..transit.fetchers import mark_collate

    step = _scratch_step()
    watched = instrumented(_IdleSingle, quiet=False)()
    watched._ls = step
    watched._dataset_fetcher = mark_collate(watched._dataset_fetcher, step, marks_end=True)
    return max(0.0, _ns_a_batch(watched, step) - _ns_a_batch(_IdleSingle(), None))


def _workers_ns() -> tuple[float, float]:
    """(in main, in the worker) ns a batch."""
    from multiprocessing.reduction import ForkingPickler

    from ..transit.worker import IndexQueue, ResultQueue, _Timer

    timer, held = _Timer(0, stateful=False), _HeldQueue()
    tasks, results = IndexQueue(held, timer), ResultQueue(held, timer)

    def made() -> Any:
        timer.timings.detailed = False
        tasks.get()
        timer.timings.t_collate = now_ns()
        results.put((0, None))
        return held.message

    best_bare = best_sealed = float("inf")
    for _ in range(_ROUNDS):
        start = now_ns()
        for _ in range(_BATCHES):
            bare = ForkingPickler.dumps((0, None))
        middle = now_ns()
        for _ in range(_BATCHES):
            sealed = ForkingPickler.dumps(made())
        end = now_ns()
        best_bare = min(best_bare, (middle - start) / _BATCHES)
        best_sealed = min(best_sealed, (end - middle) / _BATCHES)
    step = _scratch_step()
    watched: Any = instrumented(_IdleMulti, quiet=False)(bytes(sealed))
    watched._ls = step
    in_main = _ns_a_batch(watched, step) - _ns_a_batch(_IdleMulti(bytes(bare)), None)
    return max(0.0, in_main), max(0.0, best_sealed - best_bare)


@functools.lru_cache(maxsize=1)
def calibration() -> dict[str, float | None]:
    """ns a batch: `single_ns` (no workers), `main_ns` and `worker_ns` (with workers); None where it
    failed."""
    try:
        main, worker = _workers_ns()
        return {"single_ns": _single_ns(), "main_ns": main, "worker_ns": worker}
    except Exception:
        return {"single_ns": None, "main_ns": None, "worker_ns": None}


def overhead_of(config: dict[str, Any]) -> dict[str, float | None]:
    """What a loader's JSON states: `hook_ns` a batch in the training process, `worker_ns` a batch
    in its workers."""
    costs = calibration()
    if config.get("num_workers"):
        return {"hook_ns": costs["main_ns"], "worker_ns": costs["worker_ns"]}
    return {"hook_ns": costs["single_ns"], "worker_ns": None}
