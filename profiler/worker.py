"""Inside a DataLoader worker: the worker loop as torch wrote it, between two queues that look at the clock.

`run_worker` is the target of the worker process. It is pickled by reference, so fork, spawn and forkserver all take
the same way. It hands torch's own loop three things of the same behaviour: an index queue that notes when a task
arrives, a result queue that puts batches into envelopes, and fetchers that mark where collate begins.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

from . import fetchers
from .clock import now_ns, thread_cpu_ns
from .envelope import TIMES, native, sealed, sender
from .hot import Marks
from .measure import batch_size_of
from .tracebacks import clean_wrapper

_NAN = float("nan")


def run_torch_worker(*args: Any) -> None:
    """Target of a `torch.utils.data.DataLoader` worker."""
    from torch.utils.data._utils import worker

    run_worker(worker._worker_loop, args)


def run_torchdata_worker(*args: Any) -> None:
    """Target of a `torchdata.stateful_dataloader.StatefulDataLoader` worker."""
    from torchdata.stateful_dataloader import worker

    run_worker(worker._worker_loop, args)


def run_worker(loop: Callable[..., None], args: tuple[Any, ...]) -> None:
    """Run torch's own worker loop, measured. Where this torch is unlike those we know, run it bare."""
    try:
        from .session import leave_worker_alone

        leave_worker_alone()
        args = _instrument(loop, args)
    except Exception as error:
        print(f"loaderscope: this worker is not measured: {type(error).__name__}: {error}", file=sys.stderr)
    loop(*args)


def _instrument(loop: Callable[..., None], args: tuple[Any, ...]) -> tuple[Any, ...]:
    call = inspect.signature(loop).bind(*args)
    given = call.arguments
    timer = _Timer(int(given["worker_id"]), stateful="worker_state" in given)
    timer.one_by_one = fetchers.fetched_one_by_one(given["dataset"], given["auto_collation"])
    index_queue = IndexQueue(given["index_queue"], timer)
    result_queue = ResultQueue(given["data_queue"], timer)
    _mark_fetchers_of(loop, timer.marks)
    given["index_queue"] = index_queue
    given["data_queue"] = result_queue
    return call.args


def _mark_fetchers_of(loop: Callable[..., None], marks: Marks) -> None:
    """Mark the fetchers this loop makes, and no other's: a dataset may run a DataLoader of its own in the worker."""
    from torch.utils.data import _DatasetKind

    original = _DatasetKind.create_fetcher
    code = loop.__code__

    def create_fetcher(*args: Any, **kwargs: Any) -> Any:
        fetcher = original(*args, **kwargs)  # type: ignore[no-untyped-call]
        if sys._getframe(1).f_code is code:
            return fetchers.mark_collate(fetcher, marks)
        return fetcher

    _DatasetKind.create_fetcher = staticmethod(create_fetcher)  # type: ignore[method-assign]


class _Timer:
    """What is known of the task in hand."""

    def __init__(self, worker: int, stateful: bool) -> None:
        self.worker = worker
        self.stateful = stateful  # torchdata's messages hold a flag or a state beside the batch
        self.pid = os.getpid()
        self.marks = Marks()
        self.indices: Any = None
        self.one_by_one = True

    def begin(self, index: Any) -> Any:
        """A task has arrived; returns the indices to hand on."""
        marks = self.marks
        marks.tasks += 1
        if not marks.detailed:
            marks.detailed = marks.tasks % fetchers.SAMPLE_EVERY == 0
        marks.t_collate = 0
        if marks.detailed:
            if self.one_by_one:
                index = self.indices = fetchers.with_stamps(index)
            marks.t_cpu_fetch = thread_cpu_ns()
        marks.t_fetch = now_ns()
        return index

    def end(self, task: int, batch: Any) -> Any:
        """The batch is made; returns what goes on the queue."""
        end = now_ns()
        marks = self.marks
        collate_start = marks.t_collate or end
        fetch, collate = collate_start - marks.t_fetch, end - collate_start
        fetch_cpu = collate_cpu = size = tensors = -1
        fastest = median = slowest = _NAN
        if marks.detailed:
            if marks.t_collate:
                fetch_cpu = marks.t_cpu_collate - marks.t_cpu_fetch
                collate_cpu = thread_cpu_ns() - marks.t_cpu_collate
            fastest, median, slowest = fetchers.sample_times(self.indices)
            self.indices = None
            size, tensors = batch_size_of(batch)
        marks.detailed = fetch + collate > fetchers.ALWAYS_DETAILED_NS or marks.tasks < fetchers.ALWAYS_AT_FIRST
        own = now_ns() - end
        times = TIMES.pack(
            task, marks.t_fetch, fetch, collate, fetch_cpu, collate_cpu, size, own,
            tensors, self.pid, self.worker, fastest, median, slowest,
        )  # fmt: skip
        return sealed(batch, times)


class _Queue:
    """A queue that passes everything it does not watch to the real one."""

    def __init__(self, real: Any, timer: _Timer) -> None:
        self._real = real
        self._timer = timer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class IndexQueue(_Queue):
    """The queue tasks come from: `(task, indices)`, or `(task, (indices, snapshot))` from torchdata."""

    def __init__(self, real: Any, timer: _Timer) -> None:
        super().__init__(real, timer)
        if native is not None and not timer.stateful:
            self.get = native.taking(real.get, timer.marks, timer.begin)  # type: ignore[method-assign]

    def get(self, *args: Any, **kwargs: Any) -> Any:
        message = self._real.get(*args, **kwargs)
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
            task, content = message
            if self._timer.stateful:
                return task, (self._timer.begin(content[0]), content[1])
            return task, self._timer.begin(content)
        return message


class ResultQueue(_Queue):
    """The queue batches go to: `(task, batch)`, or `(task, (batch, worker, state))` from torchdata."""

    def __init__(self, real: Any, timer: _Timer) -> None:
        super().__init__(real, timer)
        from torch._utils import ExceptionWrapper
        from torch.utils.data._utils.worker import _IterableDatasetStopIteration

        self._wrapper = ExceptionWrapper
        self._no_more = _IterableDatasetStopIteration
        self._watch_sending(real)
        if native is not None and not timer.stateful:
            who = (timer.pid, timer.worker, self._wrapper, self._no_more)
            self.put = native.putting(real.put, timer.marks, self.put, who)  # type: ignore[method-assign]

    @staticmethod
    def _watch_sending(real: Any) -> None:
        # `_send_bytes` is handed to the feeder thread when it starts, at the first put.
        send = getattr(real, "_send_bytes", None)
        if send is None:
            return
        real._send_bytes = sender(send)

    def put(self, message: Any, *args: Any, **kwargs: Any) -> Any:
        if type(message) is tuple and type(message[0]) is int:
            task, content = message
            if not self._timer.stateful:
                message = task, self._sealed(task, content)
            elif type(content) is tuple:  # not the acknowledgement of a start
                message = task, (self._sealed(task, content[0]), *content[1:])
        return self._real.put(message, *args, **kwargs)

    def _sealed(self, task: int, batch: Any) -> Any:
        kind = type(batch)
        if kind is self._wrapper:
            clean_wrapper(batch)
            return batch
        if kind is self._no_more:
            return batch
        try:
            return self._timer.end(task, batch)
        except Exception:  # a failure of ours must never cost a batch
            return batch
