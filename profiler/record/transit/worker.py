"""Inside a DataLoader worker: torch's own worker loop, between two queues that read the clock.

`prepared` replaces two methods of this process's queues: `get` notes when a task arrives, and `put`
puts batches into envelopes. Fetchers mark where collate begins. The data set is only reached
through the fetcher, since torch frees it when the loop ends.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base import torch_parts
from ...base.clock import now_ns, thread_cpu_ns
from ...base.own_frames import HERE
from ...base.ptrace import allow_as_told
from ...guard.error_origin import forgiving, is_ours
from ...guard.static_access import is_one_of
from ...guard.tracebacks import clean_wrapper
from ...native.form import BatchTimings, hooks
from ...native.layout import ALWAYS_AT_FIRST, ALWAYS_DETAILED_NS, SAMPLE_EVERY, TIMES
from ...store.gaps import Place, tell_from_worker
from . import fetchers
from .envelope import sender, wrap
from .measure import batch_size_of

if TYPE_CHECKING:
    from ..fetch_probe.probe import FetchProbe

_NO_SAMPLES = (float("nan"),) * 3


def prepared(loop: Callable[..., None], args: tuple[Any, ...], place: Place) -> Callable[[], None]:
    """Have torch's loop measure with these arguments. Returns what to call at its end."""
    try:
        from ..session.session import leave_worker_alone

        leave_worker_alone()
        allow_as_told()
        return _instrument(loop, args, place).close
    except Exception as error:
        if not is_ours(error):
            raise
        tell_from_worker(place, error)
    return lambda: None


def _instrument(loop: Callable[..., None], args: tuple[Any, ...], place: Place) -> _Timer:
    given = torch_parts.loop_parts(loop, *args)
    timer = _Timer(int(given[torch_parts.WORKER]), torch_parts.STATE in given)
    if place is not None:
        from ..fetch_probe.probe import FetchProbe

        folder, loader, epoch = place
        file = Path(folder) / f"looks-{loader}-w{timer.worker}.json"
        timer.probe = FetchProbe(file, epoch, in_worker=True)
    tasks, results = given[torch_parts.TASKS], given[torch_parts.BATCHES]
    timer.listen(tasks, results)

    def go_on_bare(error: Exception) -> None:
        del tasks.get, results.put
        tell_from_worker(place, error)

    _mark_fetchers_of(loop, timer, go_on_bare)
    return timer


def _mark_fetchers_of(
    loop: Callable[..., None], timer: _Timer, give_up: Callable[[Exception], None]
) -> None:
    """Mark the fetchers that this loop makes. (A data set may run a DataLoader of its own here.)"""
    maker = torch_parts.fetcher_maker()
    original = maker.create_fetcher
    code = loop.__code__

    def marked(fetcher: Any) -> Any:
        maker = sys._getframe(1)
        while maker.f_code.co_filename.startswith(HERE) and maker.f_back is not None:
            maker = maker.f_back
        if maker.f_code is code:
            try:
                return timer.fetcher_made(fetchers.mark_collate(fetcher, timer.timings))
            except Exception as error:
                if not is_ours(error):
                    raise
                give_up(error)
        return fetcher

    # An iterable data set begins there. Compiled, no frame of ours surrounds its code.
    maker.create_fetcher = staticmethod(hooks.following(original, marked))


class _Timer:
    """The times of the task in hand."""

    def __init__(self, worker: int, stateful: bool) -> None:
        self.worker = worker
        self.stateful = stateful
        self.pid = os.getpid()
        self.timings = BatchTimings()
        self.indices: Any = None
        self.one_by_one = self.auto_collation = True
        self.probe: FetchProbe | None = None
        self._fetcher: Callable[[], Any] | None = None  # a weak reference
        self._signals = torch_parts.worker_signals()

    def listen(self, tasks: Any, results: Any) -> None:
        """Have these queues, of this process alone, read the clock. Messages are `(task, indices)`
        and `(task, batch)`; torchdata's are `(task, (indices, snapshot))` and `(task, (batch,
        worker, state))`."""
        get, put, send = tasks.get, results.put, getattr(results, "_send_bytes", None)

        def take(*args: Any, **kwargs: Any) -> Any:
            message = get(*args, **kwargs)
            if _is_task(message):
                task, content = message
                return task, (self.begin(content[0]), *content[1:])
            return message

        def put_carefully(message: Any, *args: Any, **kwargs: Any) -> Any:
            if _is_task(message):
                task, content = message
                if not self.stateful:
                    message = task, self._wrapped(task, content)
                elif type(content) is tuple:  # not the acknowledgement of a start
                    message = task, (self._wrapped(task, content[0]), *content[1:])
            result = put(message, *args, **kwargs)
            if self.probe is not None:
                self.probe.settle()
            return result

        if not self.stateful:
            take = hooks.taking(get, self.timings, self.begin)
            who = (self.pid, self.worker, *self._signals)
            put_carefully = hooks.putting(put, self.timings, put_carefully, who)
        if send is not None:  # the feeder thread receives it when it starts, at the first put
            results._send_bytes = sender(send)
        tasks.get, results.put = take, put_carefully

    def _wrapped(self, task: int, batch: Any) -> Any:
        if is_one_of(type(batch), self._signals):
            if self.probe is not None:
                self.probe.abandon()
            clean_wrapper(batch)
            return batch
        with forgiving():  # a failure of ours must never cost a batch
            return self.end(task, batch)
        return batch

    def close(self) -> None:
        """The loop has ended."""
        if self.probe is not None:
            self.probe.close()

    def fetcher_made(self, fetcher: Any) -> Any:
        """The worker will use this fetcher; returns it."""
        dataset, self.auto_collation = torch_parts.dataset_of(fetcher)
        self.one_by_one = fetchers.fetched_one_by_one(dataset, self.auto_collation)
        if self.probe is not None:
            self.probe.epoch += self._fetcher is not None
            self._fetcher = weakref.ref(fetcher)
        return fetcher

    def begin(self, index: Any) -> Any:
        """A task has arrived. Returns the indices to hand on."""
        timings = self.timings
        timings.tasks += 1
        if not timings.detailed:
            timings.detailed = timings.tasks % SAMPLE_EVERY == 0
        timings.t_collate = 0
        if timings.detailed:
            if self.probe is not None and self._fetcher is not None:
                samples = torch_parts.samples_of(index, self.auto_collation)
                self.probe.abandon()
                self.probe.begin_fetch(self._fetcher(), samples, index)
            if self.one_by_one:
                index = self.indices = fetchers.with_stamps(index)
            timings.t_cpu_fetch = thread_cpu_ns()
        timings.t_fetch = now_ns()
        return index

    def end(self, task: int, batch: Any) -> Any:
        """The batch is made. Returns what goes on the queue."""
        end = now_ns()
        timings = self.timings
        collate_start = timings.t_collate or end
        fetch, collate = collate_start - timings.t_fetch, end - collate_start
        fetch_cpu = collate_cpu = size = tensors = -1
        samples = _NO_SAMPLES
        if timings.detailed:
            if timings.t_collate:
                fetch_cpu = timings.t_cpu_collate - timings.t_cpu_fetch
                collate_cpu = thread_cpu_ns() - timings.t_cpu_collate
            if self.probe is not None:
                self.probe.end(fetch, fetch_cpu)
            samples = fetchers.sample_times(self.indices)
            self.indices = None
            size, tensors = batch_size_of(batch)
        timings.detailed = fetch + collate > ALWAYS_DETAILED_NS or timings.tasks < ALWAYS_AT_FIRST
        own = now_ns() - end
        times = TIMES.pack(
            task,
            timings.t_fetch,
            fetch,
            collate,
            fetch_cpu,
            collate_cpu,
            size,
            own,
            tensors,
            self.pid,
            self.worker,
            *samples,
        )
        return wrap(batch, times)


def _is_task(message: Any) -> bool:
    return type(message) is tuple and len(message) == 2 and type(message[0]) is int
