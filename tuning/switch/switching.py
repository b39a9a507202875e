"""The iterator of a tuned loader, behind which iterators of torch's own take turns."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

from ...profiler.base import torch_parts
from ...profiler.base.clock import now_ns
from ...profiler.guard.error_origin import is_ours
from ...profiler.record.iterate.watch import iterator_like
from ..evidence.evidence import Evidence
from ..evidence.guards import Depends, reason_of
from ..evidence.settings import settings_of
from .comparison import SpotChecks, Unequal
from .driver import Driver
from .epoch import begin_epoch
from .pools import IdlePools, Pool, PoolMaker
from .turns import Turns


def handing_out(driver: Driver, any_random: bool = False) -> Callable[[Any], Any]:
    """What `watch.hand_out` takes for a loader that this driver tunes. With `any_random`, random
    augmentation may draw other numbers."""
    evidence: list[Evidence] = []

    def make(loader: Any) -> Any:
        if driver.settled:
            return iterator_like(loader, loader, loader.num_workers)
        if not evidence or evidence[0].pid != os.getpid():
            evidence[:] = [Evidence(loader, any_random)]
        iterator = Switching(loader, driver, evidence[0])
        of_torch: Any = type(iterator.pool.iterator)
        iterator.__class__ = named_as(of_torch)
        return iterator

    return make


class Switching(Turns):
    """One iteration over a tuned loader, or all of them if the loader keeps its workers."""

    def __init__(self, loader: Any, driver: Driver, evidence: Evidence) -> None:
        super().__init__(driver, evidence)
        # The loader holds on to the iterator of its persistent workers: no circle.
        self.loader = weakref.ref(loader) if loader.persistent_workers else lambda: loader
        self._seed_drawn = False  # which loaders that keep their workers draw once
        self._begin(loader, None)

    # The beginning of an epoch.

    def _begin(self, loader: Any, before: Pool | None) -> None:
        """`before`: a pool whose workers stayed for this epoch."""
        self.given = 0
        self.own = own = settings_of(loader)
        self.next_pool = self._pending = None
        self.spot_checks = SpotChecks()
        self._maker = PoolMaker(loader, own, self.evidence, self.driver)
        changed = self.evidence.epoch_begins(loader, own)
        settings = self.driver.wanted(own)
        if settings != own:
            if self.evidence.why is not None:
                self._tell(self.driver.failed, settings, Depends(self.evidence.why))
            compared = settings.num_workers in self.evidence.compared or not self.driver.compared
            if self.why_not(settings) is not None or not compared:
                settings = own
        if before is not None:
            stale = before.guest and changed is not None
            if before.settings != settings or not settings.persistent_workers or stale:
                if before.settings == own and own.persistent_workers:
                    self._idle.parked[own] = before
                else:
                    before.end()
                before = None
        before = before or self._idle.parked.pop(settings, None)
        draws_seed = not (own.persistent_workers and self._seed_drawn)
        self._seed_drawn = True
        begun = begin_epoch(loader, self._maker, settings, before, draws_seed)
        self.pool, self.order, failure = begun
        if failure is not None:
            self._tell(self.driver.failed, settings, failure)
        self._primed = not (self.pool.guest and not own.num_workers)
        here = self.pool.guest and own.num_workers and not self.pool.settings.num_workers
        if here and own not in self._idle.parked:
            self._idle.parked[own] = self._maker.own_again(self.pool.step, lone=True)
        self._tell(self.driver.begun, self)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Torch calls it to begin another epoch if the loader keeps its workers."""
        self._shut_down(self.pool)
        self._begin(loader, self.pool)

    # Batches.

    def __iter__(self) -> Switching:
        return self

    def __next__(self) -> Any:
        if self.evidence.pid != os.getpid():
            self._be_of_child()
        if self._idle.released:
            self._idle.reap()
        if self.next_pool is not None and not torch_parts.under_way(self.pool.iterator):
            self._go_over()
        self._ask()
        while True:
            began_ns = now_ns()
            try:
                batch = next(self.pool.iterator)
                break
            except BaseException as error:
                if self._ended(error):
                    raise
        self.waited_ns = now_ns() - began_ns
        return self._hand_over(batch)

    def _ask(self) -> None:
        """The loop asks for a batch: check what it has changed, and draw what the code's settings
        draw now."""
        others = self.pool.guest or self.next_pool is not None or self._pending is not None
        if not others and self.driver.settled:
            self.evidence.settle()
        changed = self.evidence.asked(not self.pool.guest, self.pool.iterator)
        if changed is not None and others:
            self._depends(Depends(f"the loop changes {changed} between batches"))
        try:
            self.order.asked(self.pool.guest)
        except StopIteration:
            pass
        except BaseException as error:
            self.order.raised(error)
            raise
        if not self._primed:
            self._primed = True
            self.pool.draw_from(self.order)
        elif self.order.ready and self.next_pool is None:
            self.pool.top_up(self.order)

    def _hand_over(self, batch: Any) -> Any:
        pool, order = self.pool, self.order
        index = order.handed()
        order.catch_up()
        self.given += 1
        if not pool.guest:
            self.evidence.made(batch, self.own)
            self.spot_checks.unneeded()
        else:
            try:
                batch = self.spot_checks.checked(pool.settings, index, batch, self._made_by_own)
            except Unequal as error:
                batch = error.args[1]
                self._depends(error)
        if self._pending is not None:
            self._go_on_with(self._pending, index, batch)
        driver = self.driver
        try:  # as `_tell`, which takes longer
            driver.handed(self, batch)
        except Exception as error:
            if not is_ours(error):
                raise
            self._lose(driver.handed, error)
        return batch

    def _made_by_own(self, index: Any) -> Any:
        """The batch of this index by the code's own settings; None if they have no workers now."""
        if self.evidence.any_random:
            return None
        loader, twin = self.loader(), self._idle.parked.get(self.own)
        if not self.own.num_workers:
            return torch_parts.fetcher_of(loader).fetch(index) if loader is not None else None
        if twin is None:
            return None
        twin.make(index)
        return twin.made()

    # Its end, and errors.

    def _ended(self, error: BaseException) -> bool:
        """Whether the loop must see this error. If not, the code's own settings make the batch."""
        pool, order = self.pool, self.order
        if isinstance(error, StopIteration) and order.drained and not order.waiting:
            self._come_to_the_end()
            return True
        of_sampler = order.raised(error)
        # With workers torch draws ahead, and loses a batch to a sampler that fails; without, it
        # does not.
        again = pool.guest and self.loader() is not None and is_ours(error)
        if again and not (of_sampler and self.own.num_workers):
            if of_sampler:
                order.put_off(error)
            else:
                torch_parts.kill_if_stuck(pool.iterator, error)
                if isinstance(error, Depends):
                    error = Depends(reason_of(error))
                    self.evidence.end(error.args[0])
                self._tell(self.driver.failed, pool.settings, error)
            self._fall_back()
            return False
        at_work = [each for each in (pool, self.next_pool) if each is not None]
        order.keep(sum(torch_parts.under_way(each.iterator) for each in at_work))
        # Idle workers are told to end while that reaches the loop: once the error has made garbage
        # of all, torch waits for each worker 5 s in vain, and kills it.
        self._drop_pending()
        self._idle.release_parked(lambda settings: False)
        return True

    def _come_to_the_end(self) -> None:
        self.evidence.epoch_ends(self.order.handed_over)
        self._shut_down(self.pool)
        self._tell(self.driver.ended, self)
        if not self.own.persistent_workers:
            # One that is made anew each epoch lives no longer than without us.
            self.loader = lambda: None

    def _be_of_child(self) -> None:
        """The program has forked, and its child goes on with this iteration: no worker belongs to
        the child."""
        self.evidence = Evidence(self.loader(), self.evidence.any_random)
        self.driver = Driver(self.driver.pools)
        self._idle, self._pending = IdlePools(), None
        if not self.own.num_workers and (self.pool.guest or self.next_pool is not None):
            self._maker = PoolMaker(self.loader(), self.own, self.evidence, self.driver)
            self.order.give_back(0)
            self.pool, self.next_pool = self._maker.own_again(None), None
            self.pool.draw_from(self.order)

    def _shut_down(self, keep: Pool | None) -> None:
        """End all workers but those of this pool and the code's own persistent ones."""
        self._drop_pending()
        own = self._idle.parked.get(self.own) if self.own.persistent_workers and keep else None
        at_work = (each for each in (self.next_pool, self.pool) if each is not None)
        self._idle.shut_down(at_work, [each for each in (keep, own) if each is not None])
        self.next_pool = None

    def _shutdown_workers(self) -> None:
        """As torch's: frameworks call it to end persistent workers."""
        self._shut_down(None)

    # All else is the iterator's at work.

    @property
    def _num_yielded(self) -> int:
        return self.given

    def __len__(self) -> int:
        return len(self.pool.iterator)

    def __getattr__(self, name: str) -> Any:
        pool = self.__dict__.get("pool")
        if pool is None:
            raise AttributeError(name)
        return getattr(pool.iterator, name)

    def __reduce__(self) -> Any:
        return self.pool.iterator.__reduce__()


@cache
def named_as(of_torch: type) -> type:
    """Our class with the name of torch's iterator; `isinstance` says that it is one."""
    base = next(each for each in of_torch.__mro__ if not hasattr(each, "_ls"))
    body = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__class__": property(lambda self: base),
    }
    return type(base.__name__, (Switching,), body)
