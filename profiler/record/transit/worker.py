"""Inside a DataLoader worker: the worker loop as torch wrote it, between two queues that look at
the clock.

`prepared` is what the target of the worker process asks, see `worker_target`. It gives torch's own
loop three things of the same behaviour: an index queue that notes when a task arrives, a result
queue that puts batches into envelopes, and fetchers that mark where collate begins. The data set is
reached through the fetcher alone, and never held: torch lets go of it when the loop ends, and so
must we.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...base import torch_parts
from ...base.clock import now_ns, thread_cpu_ns
from ...base.own_frames import HERE
from ...base.ptrace import allow_as_told
from ...guard.error_origin import is_ours
from ...guard.tracebacks import clean_wrapper
from ...native.form import BatchTimings, hooks
from ...native.layout import ALWAYS_AT_FIRST, ALWAYS_DETAILED_NS, SAMPLE_EVERY, TIMES
from ...store.gaps import Place, tell_from_worker
from . import fetchers
from .envelope import sealed, sender
from .measure import batch_size_of

_NAN = float("nan")


def prepared(
    loop: Callable[..., None], args: tuple[Any, ...], place: Place
) -> tuple[tuple[Any, ...], Callable[[], None]]:
    """(what to call torch's loop with, what to call when it has ended)."""
    inside = None
    try:
        from ..session.session import leave_worker_alone

        leave_worker_alone()
        allow_as_told()
        args, inside = _instrument(loop, args, place)
    except Exception as error:
        if not is_ours(error):
            raise
        tell_from_worker(place, error)
    return args, inside.close if inside is not None else _nothing


def _nothing() -> None:
    pass


def _instrument(
    loop: Callable[..., None], args: tuple[Any, ...], place: Place
) -> tuple[tuple[Any, ...], WorkerProbe | None]:
    roles = torch_parts.loop_roles(loop)
    timer = _Timer(int(args[roles.worker]), roles.stateful)
    if place is not None:
        timer.inside = WorkerProbe(place, timer.worker)
    given = list(args)
    index_queue = given[roles.index_queue] = IndexQueue(args[roles.index_queue], timer)
    result_queue = given[roles.result_queue] = ResultQueue(args[roles.result_queue], timer)

    def go_on_bare(error: Exception) -> None:
        index_queue.be_plain()
        result_queue.be_plain()
        tell_from_worker(place, error)

    _mark_fetchers_of(loop, timer, go_on_bare)
    return tuple(given), timer.inside


def _mark_fetchers_of(
    loop: Callable[..., None], timer: _Timer, give_up: Callable[[Exception], None]
) -> None:
    """Mark the fetchers this loop makes, and no other's: a dataset may run a DataLoader of its own
    in the worker."""
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

    # An iterable data set begins there: compiled, no frame of ours stands around its code.
    maker.create_fetcher = staticmethod(hooks.following(original, marked))


class WorkerProbe:
    """What is sampled of this worker's fetches; a first batch pays for what they need."""

    def __init__(self, place: tuple[str, int, int], worker: int) -> None:
        from ..fetch_probe.chains import Chains
        from ..fetch_probe.probe import FetchProbe

        folder, loader, epoch = place
        self._probe = FetchProbe(
            Path(folder) / f"looks-{loader}-w{worker}.json", epoch, in_worker=True
        )
        self._chains = Chains(self._dataset)
        self._fetcher: Callable[[], Any] = lambda: None
        self._auto_collation = True
        self._fetchers = 0
        self._sampling = False

    def epoch_begins(self, fetcher: Any, auto_collation: bool) -> None:
        """A fetcher is made: for the epoch this worker was started for, or for a later one."""
        self._probe.epoch += self._fetchers > 0
        self._fetchers += 1
        self._fetcher = weakref.ref(fetcher)
        self._auto_collation = auto_collation

    def _dataset(self) -> Any:
        fetcher = self._fetcher()
        return torch_parts.dataset_of(fetcher)[0] if fetcher is not None else None

    def begin(self, index: Any) -> None:
        """The batch of these indices is about to be fetched, and measured in detail."""
        if self._sampling:
            self.abandon()
        if self._probe.wants():
            samples = len(index) if type(index) is list else -1 if self._auto_collation else 1
            self._sampling = self._probe.begin(self._chains, samples)

    def end(self, fetch_ns: int, fetch_cpu_ns: int) -> None:
        """It was fetched in this time."""
        if self._sampling:
            self._sampling = False
            self._probe.end(fetch_ns, fetch_cpu_ns)

    def abandon(self) -> None:
        """It was not."""
        if self._sampling:
            self._sampling = False
            self._probe.abandon()

    def settle(self) -> None:
        """The batch is on its way: time to sum up."""
        self._probe.settle()

    def close(self) -> None:
        """The worker ends."""
        self._probe.close()


class _Timer:
    """What is known of the task in hand."""

    def __init__(self, worker: int, stateful: bool) -> None:
        self.worker = worker
        self.stateful = stateful  # torchdata's messages hold a flag or a state beside the batch
        self.pid = os.getpid()
        self.timings = BatchTimings()
        self.indices: Any = None
        self.one_by_one = True
        self.inside: WorkerProbe | None = None

    def fetcher_made(self, fetcher: Any) -> Any:
        """The worker will fetch with this one; returns it."""
        dataset, auto_collation = torch_parts.dataset_of(fetcher)
        self.one_by_one = fetchers.fetched_one_by_one(dataset, auto_collation)
        if self.inside is not None:
            self.inside.epoch_begins(fetcher, auto_collation)
        return fetcher

    def begin(self, index: Any) -> Any:
        """A task has arrived; returns the indices to hand on."""
        timings = self.timings
        timings.tasks += 1
        if not timings.detailed:
            timings.detailed = timings.tasks % SAMPLE_EVERY == 0
        timings.t_collate = 0
        if timings.detailed:
            if self.inside is not None:
                self.inside.begin(index)
            if self.one_by_one:
                index = self.indices = fetchers.with_stamps(index)
            timings.t_cpu_fetch = thread_cpu_ns()
        timings.t_fetch = now_ns()
        return index

    def end(self, task: int, batch: Any) -> Any:
        """The batch is made; returns what goes on the queue."""
        end = now_ns()
        timings = self.timings
        collate_start = timings.t_collate or end
        fetch, collate = collate_start - timings.t_fetch, end - collate_start
        fetch_cpu = collate_cpu = size = tensors = -1
        fastest = median = slowest = _NAN
        if timings.detailed:
            if timings.t_collate:
                fetch_cpu = timings.t_cpu_collate - timings.t_cpu_fetch
                collate_cpu = thread_cpu_ns() - timings.t_cpu_collate
            if self.inside is not None:
                self.inside.end(fetch, fetch_cpu)
            fastest, median, slowest = fetchers.sample_times(self.indices)
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
            fastest,
            median,
            slowest,
        )
        return sealed(batch, times)


class _Queue:
    """A queue that passes everything it does not watch to the real one."""

    def __init__(self, real: Any, timer: _Timer) -> None:
        self._real = real
        self._timer = timer

    def be_plain(self) -> None:
        """From now on, pass on everything."""
        self.get, self.put = self._real.get, self._real.put

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class IndexQueue(_Queue):
    """The queue tasks come from: `(task, indices)`, or `(task, (indices, snapshot))` from
    torchdata."""

    def __init__(self, real: Any, timer: _Timer) -> None:
        super().__init__(real, timer)
        if not timer.stateful:
            self.get = hooks.taking(real.get, timer.timings, timer.begin)  # type: ignore[method-assign]

    def get(self, *args: Any, **kwargs: Any) -> Any:
        message = self._real.get(*args, **kwargs)
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
            task, content = message
            return task, (self._timer.begin(content[0]), *content[1:])
        return message


class ResultQueue(_Queue):
    """The queue batches go to: `(task, batch)`, or `(task, (batch, worker, state))` from
    torchdata."""

    def __init__(self, real: Any, timer: _Timer) -> None:
        super().__init__(real, timer)
        self._wrapper, self._no_more = torch_parts.worker_signals()
        self._watch_sending(real)
        if not timer.stateful:
            who = (timer.pid, timer.worker, self._wrapper, self._no_more)
            self.put = hooks.putting(real.put, timer.timings, self.put, who)  # type: ignore[method-assign]

    @staticmethod
    def _watch_sending(real: Any) -> None:
        # `_send_bytes` is handed to the feeder thread when it starts, at the first put.
        send = getattr(real, "_send_bytes", None)
        if send is None:
            return
        real._send_bytes = sender(send)

    def put(self, message: Any, *args: Any, **kwargs: Any) -> Any:
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
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
        except Exception as error:  # a failure of ours must never cost a batch
            if not is_ours(error):
                raise
            return batch
