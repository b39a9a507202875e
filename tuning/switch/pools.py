"""Torch's own iterators that take turns: how they are made, what is known of each, and where they
wait for another turn."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import asdict, replace

from ...profiler.base import torch_parts
from ...profiler.record.iterate.watch import iterator_like
from ..evidence.evidence import Evidence
from ..evidence.guards import CollateInWorker, FetchHere
from ..evidence.settings import Settings
from ..evidence.streams import fresh_generator, numbered_seed
from ..evidence.worker_context import WorkerContext
from .driver import Driver
from .order import Order

# Forked workers lack the threads that this process has, and may wait for one for ever: a batch that
# takes so long is an error, after which the code's own settings make it.
STUCK_S = 60


class Pool:
    """One of torch's iterators and its settings. A guest has other settings than the user's
    code."""

    def __init__(self, iterator: Any, settings: Settings, guest: bool) -> None:
        self.iterator, self.settings, self.guest = iterator, settings, guest
        self.workers: WorkerContext | None = None  # how they start, unless torch starts them

    @property
    def started(self) -> bool:
        """Whether its workers can take tasks."""
        return self.workers is None or self.workers.ready

    @property
    def step(self) -> Any:
        """What records it; None if nothing does."""
        return getattr(self.iterator, "_ls", None)

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in getattr(self.iterator, "_workers", ())]

    def begin_epoch(self, loader: Any, sampler: Any) -> None:
        """Begin another epoch."""
        self.iterator._index_sampler = sampler
        try:
            self.iterator._reset(loader)
        finally:
            self.iterator._index_sampler = loader._index_sampler

    def draw_from(self, order: Order) -> None:
        """Make the batches of this order from now on. Raises what the sampler raises."""
        torch_parts.go_on(self.iterator, order)

    def top_up(self, order: Order) -> None:
        """Take indices that could not be drawn when there was room for a task."""
        while self.settings.num_workers and order.ready and torch_parts.has_room(self.iterator):
            torch_parts.put_task(self.iterator)

    def make(self, index: Any) -> None:
        """Begin a batch outside of the order, which `made` returns; without workers, one at a
        time."""
        self.iterator._sampler_iter = iter([index])
        if self.settings.num_workers:
            torch_parts.put_task(self.iterator)

    def made(self) -> Any:
        """The next of those batches, not recorded. Waits for it, and raises what making it
        raises."""
        iterator, step = self.iterator, self.step
        if step is not None:
            iterator._ls = None
        try:
            return next(iterator)
        finally:
            if step is not None:
                iterator._ls = step

    def end(self) -> None:
        """End its workers, and wait for them."""
        if self.step is not None:
            self.step.left()
        if self.settings.num_workers:
            self.iterator._shutdown_workers()


class IdlePools:
    """Pools that wait for another turn, and pools whose workers were told to end."""

    def __init__(self) -> None:
        self.parked: dict[Settings, Pool] = {}
        self.released: list[Pool] = []

    def release(self, pool: Pool) -> None:
        """Tell its workers to end, without waiting."""
        if pool.step is not None:
            pool.step.left()
        if pool.settings.num_workers:
            torch_parts.dismiss(pool.iterator)
            self.released.append(pool)

    def release_parked(self, keeps: Callable[[Settings], bool]) -> None:
        """Release all pools whose settings are not kept."""
        for settings in [each for each in self.parked if not keeps(each)]:
            self.release(self.parked.pop(settings))

    def reap(self) -> None:
        """Close the pools whose workers have ended."""
        for pool in [each for each in self.released if torch_parts.dismissed(each.iterator)]:
            self.released.remove(pool)
            pool.iterator._shutdown_workers()

    def shut_down(self, others: Iterable[Pool], keep: Iterable[Pool]) -> None:
        """End these and all idle pools except the kept ones, and wait for their workers."""
        kept = list(keep)
        for pool in dict.fromkeys([*self.released, *others, *self.parked.values()]):
            if pool not in kept:
                pool.end()
        self.parked = {each: pool for each, pool in self.parked.items() if pool in kept}
        self.released.clear()


class LoaderView:
    """A loader as torch's iterators see it, with some other attributes."""

    def __init__(self, loader: Any, **attributes: Any) -> None:
        vars(self).update(attributes, _loader=loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class PoolMaker:
    """Makes pools for one iteration over a loader."""

    def __init__(self, loader: Any, own: Settings, evidence: Evidence, driver: Driver) -> None:
        self._loader: Callable[[], Any] = weakref.ref(loader)
        self.settings, self.evidence, self._driver = own, evidence, driver

    def own(self, sampler: Any, generator: Any) -> Pool:
        """With the settings of the code, at the beginning of an epoch, as torch makes it."""
        view = self._view(self.settings)
        view._index_sampler, view.generator = sampler, generator
        if self._driver.pools and self.settings.num_workers:  # this process may have fetched
            view.multiprocessing_context = WorkerContext(view.multiprocessing_context)
        return self._pool(view, self.settings, None)

    def own_again(self, first: Any, later: bool = False, lone: bool = False) -> Pool:
        """With the settings of the code, in mid-epoch, waiting for an order. `first`: the step that
        began the epoch; `later`: its workers are started later; `lone`: one worker, which keeps the
        data set as it is now."""
        own = self.settings
        held = replace(own, num_workers=1, prefetch_factor=own.ahead) if lone else own
        pool = self._further(self._view(held), own, first, later)
        if later and own.num_workers:
            torch_parts.let_die(pool.iterator)  # until they have started
        return pool

    def guest(
        self, settings: Settings, first: Any, later: bool = False, witness: bool = False
    ) -> Pool:
        """With other settings, waiting for an order. A witness shows whether this process could
        fetch instead of workers."""
        loader, own, evidence = self._loader(), self.settings, self.evidence
        view = self._view(settings)
        if settings.num_workers:
            view.timeout = loader.timeout or STUCK_S
            data = evidence.data if witness or not own.num_workers else None
            view.collate_fn = CollateInWorker(
                loader.collate_fn, not evidence.any_random, data, strict=witness
            )
        pool = self._further(view, settings, first, later)
        if settings.num_workers:
            torch_parts.let_die(pool.iterator)
        elif own.num_workers:
            fetcher = pool.iterator._dataset_fetcher
            FetchHere(fetcher, lambda: evidence.data if evidence.may_look() else None)
        return pool

    def _view(self, settings: Settings) -> Any:
        view: Any = LoaderView(self._loader(), **asdict(settings))
        if not settings.num_workers:
            view.prefetch_factor, view.timeout = None, 0
        return view

    def _further(self, view: Any, settings: Settings, first: Any, later: bool) -> Pool:
        """A pool that an untuned loader does not have."""
        self._driver.pools += 1
        loader = self._loader()
        view._index_sampler = ()
        view.generator = fresh_generator(numbered_seed(loader, self._driver.pools))
        view.check_worker_number_rationality = lambda: None  # it is no wish of the user's
        if settings.num_workers:
            view.multiprocessing_context = WorkerContext(loader.multiprocessing_context, later)
        pool = self._pool(view, settings, first)
        if settings.num_workers:
            pool.workers = view.multiprocessing_context
            _not_of_children.add(pool.iterator)
        return pool

    def _pool(self, view: Any, settings: Settings, first: Any) -> Pool:
        loader = self._loader()
        iterator = iterator_like(loader, view, view.num_workers, first)
        iterator._index_sampler = loader._index_sampler
        if settings.num_workers:
            torch_parts.start_feeding(iterator)
        return Pool(iterator, settings, settings != self.settings)


# A child that the program forks has these iterators too, and must not end their workers.
_not_of_children: weakref.WeakSet[Any] = weakref.WeakSet()


def _leave_workers_alone() -> None:
    for iterator in list(_not_of_children):
        iterator._shutdown = True


os.register_at_fork(after_in_child=_leave_workers_alone)
