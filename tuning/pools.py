"""Iterators of torch's own that take turns behind one of ours: how they are made, and what is known
of each."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ..profiler.base import torch_parts
from ..profiler.record.iterate.watch import iterator_like
from .driver import Driver
from .guards import CollateInWorker, FetchHere
from .later_workers import ApartWorkers, LaterWorkers
from .order import Order
from .settings import Settings
from .shown import Shown
from .streams import fresh_generator, numbered_seed
from .whole_batches import as_made, whole_batches

# Forked workers lack the threads that this process has, and may wait for one for ever: a batch that
# takes so long is an error, after which the code's own settings make it.
STUCK_S = 60


class Pool:
    """An iterator of torch's own and its settings. A guest has other settings than the user's
    code."""

    def __init__(self, iterator: Any, settings: Settings, guest: bool) -> None:
        self.iterator = iterator
        self.settings = settings
        self.guest = guest
        self.given = 0  # batches handed over
        self.shift = 0  # from the numbers of torch's tasks to those of the order
        self._apart: deque[Any] = deque()  # indices of batches that it makes for a comparison

    @property
    def any_order(self) -> bool:
        """Whether its batches come in the order in which they are ready."""
        return self.settings.num_workers > 0 and not self.settings.in_order

    @property
    def fetches_here(self) -> bool:
        return not self.settings.num_workers

    @property
    def most_tasks(self) -> int:
        """Batches that it may have under way at once."""
        return max(1, self.settings.ahead)

    @property
    def empty(self) -> bool:
        return not torch_parts.under_way(self.iterator)

    @property
    def step(self) -> Any:
        """What records it; None where nothing does."""
        return getattr(self.iterator, "_ls", None)

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in getattr(self.iterator, "_workers", ())]

    def under_way(self) -> set[int]:
        """The numbers of the indices whose batches it has not given yet."""
        return {task + self.shift for task in torch_parts.tasks(self.iterator)}

    def draw_from(self, order: Order) -> None:
        """It makes the batches of this order from now on. Raises what the sampler raises."""
        self.shift = order.taken - torch_parts.next_task(self.iterator)
        torch_parts.go_on(self.iterator, order)

    def top_up(self, order: Order) -> None:
        """It takes what could not be drawn yet when it had room for a task."""
        while self.settings.num_workers and order.ready and torch_parts.has_room(self.iterator):
            torch_parts.put_task(self.iterator)

    # For comparisons, while it is at work for nobody.

    def make(self, index: Any) -> None:
        """Begin to make the batch of this index, which `made` gives."""
        self._apart.append(index)
        if self.settings.num_workers:
            torch_parts.take_one(self.iterator, iter([self._apart.pop()]))

    def made(self) -> Any:
        """The next of those batches, waited for and not recorded. Raises what making it raises."""
        iterator = self.iterator
        if not self.settings.num_workers:
            iterator._sampler_iter = iter([self._apart.popleft()])
        step = self.step
        if step is not None:
            iterator._ls = None
        try:
            return next(iterator)
        finally:
            if step is not None:
                iterator._ls = step


class PendingPool:
    """A pool whose workers are being started, or whose batches are compared. It is at work for
    nobody yet."""

    def __init__(self, pool: Pool, workers: LaterWorkers | None, settings: Settings) -> None:
        """`settings`: those that are wanted; of a witness, which is never at work, others than its
        own."""
        self.pool, self.workers, self.settings = pool, workers, settings
        self.wanted = True  # since the last batch
        self.last_ns = 0  # when the last worker was started

    @property
    def ready(self) -> bool:
        return self.workers is None or self.workers.ready


class ExhaustedIterator:
    """An iteration that has come to its end, of which another goes on with the workers."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __next__(self) -> Any:
        raise StopIteration

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


class SamplerView:
    """Stands for a loader's sampler: torch asks it for an iterator, and may do so twice an
    epoch."""

    def __init__(self, sampler: Any, new_order: Callable[[Any], Order]) -> None:
        self._sampler, self._new_order = sampler, new_order
        self.order: Order | None = None

    def __iter__(self) -> Order:
        self.order = self._new_order(iter(self._sampler))
        return self.order

    def __len__(self) -> int:
        return len(self._sampler)


class LoaderView:
    """A loader as torch's iterators see it: with these settings and this sampler, all else as it
    is."""

    def __init__(self, loader: Any, settings: Settings, sampler: Any, generator: Any) -> None:
        """Raises NotArrays where whole batches are wanted and cannot be looked up."""
        self.settings = settings
        self.multiprocessing_context = loader.multiprocessing_context
        self.check_worker_number_rationality: Callable[[], None] = (
            loader.check_worker_number_rationality
        )
        self.collate_fn: Any = loader.collate_fn
        workers = settings.num_workers
        if settings.batched:
            self.dataset, self.collate_fn = whole_batches(loader), as_made
        self._loader = loader
        self._index_sampler = sampler
        self.generator = generator
        self.num_workers = workers
        self.prefetch_factor = settings.prefetch_factor if workers else None
        self.pin_memory = settings.pin_memory
        self.persistent_workers = settings.persistent_workers
        self.in_order = settings.in_order
        self.timeout = loader.timeout if workers else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class PoolMaker:
    """Makes pools for one iteration over a loader."""

    def __init__(self, loader: Any, own: Settings, shown: Shown, driver: Driver) -> None:
        self._loader: Callable[[], Any] = weakref.ref(loader)
        self._own, self._shown, self._driver = own, shown, driver

    def own(self, sampler: Any, generator: Any) -> Pool:
        """With the settings of the code, as torch makes it at the beginning of an epoch."""
        loader = self._loader()
        # This process may have fetched, which it would not.
        context = ApartWorkers(loader.multiprocessing_context) if self._driver.pools else None
        return self._pool(LoaderView(loader, self._own, sampler, generator), None, context)

    def own_again(self, first: Any) -> Pool:
        """With the settings of the code, in mid-epoch, to be given an order; `first`: the step that
        began the epoch."""
        loader = self._loader()
        view = LoaderView(loader, self._own, _Nothing(), self._generator())
        view.check_worker_number_rationality = _say_nothing
        return self._further(self._pool(view, first, ApartWorkers(loader.multiprocessing_context)))

    def witness(self, settings: Settings, first: Any) -> PendingPool:
        """One worker that shows whether this process could fetch in the place of workers, with
        these settings."""
        loader = self._loader()
        workers = LaterWorkers(loader.multiprocessing_context)
        view = LoaderView(loader, settings.with_workers(1), _Nothing(), self._generator())
        view.check_worker_number_rationality = _say_nothing
        view.collate_fn = CollateInWorker(
            loader.collate_fn, not self._shown.any_random, self._shown.data, strict=True
        )
        pool = self._further(self._pool(view, first, workers))
        torch_parts.let_die(pool.iterator)
        return PendingPool(pool, workers, settings)

    def reserve(self, first: Any) -> Pool:
        """One worker of the code's own, which has the data set as it is now, for whatever the loop
        may change later."""
        loader = self._loader()
        view = LoaderView(loader, self._own, _Nothing(), self._generator())
        view.check_worker_number_rationality = _say_nothing
        view.num_workers, view.prefetch_factor = 1, self._own.ahead
        return self._further(self._pool(view, first, ApartWorkers(loader.multiprocessing_context)))

    def later(self, settings: Settings, first: Any) -> PendingPool:
        """With these settings, in mid-epoch, its workers not started yet."""
        loader = self._loader()
        workers = LaterWorkers(loader.multiprocessing_context) if settings.num_workers else None
        if settings != self._own:
            return PendingPool(self.guest(settings, first, workers), workers, settings)
        view = LoaderView(loader, settings, _Nothing(), self._generator())
        view.check_worker_number_rationality = _say_nothing
        pool = self._further(self._pool(view, first, workers))
        if settings.num_workers:
            torch_parts.let_die(pool.iterator)  # until they have started
        return PendingPool(pool, workers, settings)

    def guest(self, settings: Settings, first: Any, workers: LaterWorkers | None = None) -> Pool:
        """With other settings, to be given an order. Its workers start at once, or as `workers`
        says."""
        loader, own = self._loader(), self._own
        view = LoaderView(loader, settings, _Nothing(), self._generator())
        view.check_worker_number_rationality = _say_nothing  # they are no wish of the user's
        if settings.num_workers:
            view.timeout = loader.timeout or STUCK_S
            data = None if own.num_workers else self._shown.data
            view.collate_fn = CollateInWorker(
                loader.collate_fn, not self._shown.any_random, data, strict=False
            )
        pool = self._further(
            self._pool(view, first, workers or ApartWorkers(loader.multiprocessing_context))
        )
        if settings.num_workers:
            torch_parts.let_die(pool.iterator)
        elif own.num_workers and not settings.batched:  # what is looked up draws and opens nothing
            fetcher = pool.iterator._dataset_fetcher
            fetcher.fetch = FetchHere(fetcher, lambda: self._shown.data, self._shown.may_look)
        return pool

    def _pool(self, view: LoaderView, first: Any, context: Any) -> Pool:
        loader, settings = self._loader(), view.settings
        if context is not None and settings.num_workers:
            view.multiprocessing_context = context
        iterator = iterator_like(loader, view, view.num_workers, first)
        iterator._index_sampler = loader._index_sampler
        if settings.num_workers:
            torch_parts.start_feeding(iterator)
        return Pool(iterator, settings, settings != self._own)

    def _further(self, pool: Pool) -> Pool:
        """One that the code's own settings would not make."""
        if pool.settings.num_workers:
            _not_of_children.add(pool.iterator)
        return pool

    def _generator(self) -> Any:
        self._driver.pools += 1
        return fresh_generator(numbered_seed(self._loader(), self._driver.pools))


class _Nothing:
    """A sampler that gives nothing yet."""

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def _say_nothing() -> None: ...


def end(pool: Pool) -> None:
    """Its workers are told to end, and waited for."""
    if pool.step is not None:
        pool.step.left()
    if pool.settings.num_workers:
        pool.iterator._shutdown_workers()


# A child that the program forks has these iterators too, and must not end their workers.
_not_of_children: weakref.WeakSet[Any] = weakref.WeakSet()


def _leave_workers_alone() -> None:
    for iterator in list(_not_of_children):
        iterator._shutdown = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_workers_alone)
