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
from pathlib import Path
from typing import Any

from . import fetchers
from .clock import now_ns, thread_cpu_ns
from .envelope import TIMES, native, sealed, sender
from .hot import Marks
from .measure import batch_size_of
from .ptrace import allow_as_told
from .tracebacks import clean_wrapper

_NAN = float("nan")


# Where a worker keeps what its looks see: (folder of the session, number of the loader, epoch); None: it takes none.
Place = tuple[str, int, int] | None


def run_torch_worker(place: Place, *args: Any) -> None:
    """Target of a `torch.utils.data.DataLoader` worker."""
    from torch.utils.data._utils import worker

    run_worker(worker._worker_loop, args, place)


def run_torchdata_worker(place: Place, *args: Any) -> None:
    """Target of a `torchdata.stateful_dataloader.StatefulDataLoader` worker."""
    from torchdata.stateful_dataloader import worker

    run_worker(worker._worker_loop, args, place)


def run_worker(loop: Callable[..., None], args: tuple[Any, ...], place: Place = None) -> None:
    """Run torch's own worker loop, measured. Where this torch is unlike those we know, run it bare."""
    inside = None
    try:
        from .session import leave_worker_alone

        leave_worker_alone()
        allow_as_told()
        args, inside = _instrument(loop, args, place)
    except Exception as error:
        print(f"loaderscope: this worker is not measured: {type(error).__name__}: {error}", file=sys.stderr)
    try:
        loop(*args)
    finally:
        if inside is not None:
            inside.close()


def _instrument(
    loop: Callable[..., None], args: tuple[Any, ...], place: Place
) -> tuple[tuple[Any, ...], WorkerLooks | None]:
    call = inspect.signature(loop).bind(*args)
    given = call.arguments
    timer = _Timer(int(given["worker_id"]), stateful="worker_state" in given)
    timer.one_by_one = fetchers.fetched_one_by_one(given["dataset"], given["auto_collation"])
    if place is not None:
        timer.inside = WorkerLooks(place, timer.worker, given["dataset"], given["auto_collation"])
    index_queue = IndexQueue(given["index_queue"], timer)
    result_queue = ResultQueue(given["data_queue"], timer)
    _mark_fetchers_of(loop, timer)
    given["index_queue"] = index_queue
    given["data_queue"] = result_queue
    return call.args, timer.inside


def _mark_fetchers_of(loop: Callable[..., None], timer: _Timer) -> None:
    """Mark the fetchers this loop makes, and no other's: a dataset may run a DataLoader of its own in the worker."""
    from torch.utils.data import _DatasetKind

    original = _DatasetKind.create_fetcher
    code = loop.__code__

    def create_fetcher(*args: Any, **kwargs: Any) -> Any:
        fetcher = original(*args, **kwargs)  # type: ignore[no-untyped-call]
        if sys._getframe(1).f_code is code:
            if timer.inside is not None:
                timer.inside.epoch_begins()
            return fetchers.mark_collate(fetcher, timer.marks)
        return fetcher

    _DatasetKind.create_fetcher = staticmethod(create_fetcher)  # type: ignore[method-assign]


class WorkerLooks:
    """The looks of this worker, see `looker`; a first batch pays for what they need."""

    def __init__(self, place: tuple[str, int, int], worker: int, dataset: Any, auto_collation: bool) -> None:
        from .chains import Chains
        from .looker import Looker

        folder, loader, epoch = place
        self._looker = Looker(Path(folder) / f"looks-{loader}-w{worker}.json", epoch, in_worker=True)
        self._chains = Chains(dataset)
        self._auto_collation = auto_collation
        self._fetchers = 0
        self._looking = False

    def epoch_begins(self) -> None:
        """A fetcher is made: for the epoch this worker was started for, or for a later one."""
        self._looker.epoch += self._fetchers > 0
        self._fetchers += 1

    def begin(self, index: Any) -> None:
        """The batch of these indices is about to be fetched, and looked at in detail."""
        if self._looking:
            self.abandon()
        if self._looker.wants():
            samples = len(index) if type(index) is list else -1 if self._auto_collation else 1
            self._looking = self._looker.begin(self._chains, samples)

    def end(self, fetch_ns: int, fetch_cpu_ns: int) -> None:
        """It was fetched in this time."""
        if self._looking:
            self._looking = False
            self._looker.end(fetch_ns, fetch_cpu_ns)

    def abandon(self) -> None:
        """It was not."""
        if self._looking:
            self._looking = False
            self._looker.abandon()

    def settle(self) -> None:
        """The batch is on its way: time to sum up."""
        self._looker.settle()

    def close(self) -> None:
        """The worker ends."""
        self._looker.close()


class _Timer:
    """What is known of the task in hand."""

    def __init__(self, worker: int, stateful: bool) -> None:
        self.worker = worker
        self.stateful = stateful  # torchdata's messages hold a flag or a state beside the batch
        self.pid = os.getpid()
        self.marks = Marks()
        self.indices: Any = None
        self.one_by_one = True
        self.inside: WorkerLooks | None = None

    def begin(self, index: Any) -> Any:
        """A task has arrived; returns the indices to hand on."""
        marks = self.marks
        marks.tasks += 1
        if not marks.detailed:
            marks.detailed = marks.tasks % fetchers.SAMPLE_EVERY == 0
        marks.t_collate = 0
        if marks.detailed:
            if self.inside is not None:
                self.inside.begin(index)
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
            if self.inside is not None:
                self.inside.end(fetch, fetch_cpu)
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
        result = self._real.put(message, *args, **kwargs)
        if self._timer.inside is not None:
            self._timer.inside.settle()
        return result

    def _sealed(self, task: int, batch: Any) -> Any:
        kind = type(batch)
        if kind is self._wrapper or kind is self._no_more:
            if self._timer.inside is not None:
                self._timer.inside.abandon()
            clean_wrapper(batch)
            return batch
        try:
            return self._timer.end(task, batch)
        except Exception:  # a failure of ours must never cost a batch
            return batch
