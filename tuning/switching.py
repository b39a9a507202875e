"""What a tuned loader hands to the loop: an iterator behind which others take turns.

To switch, the workers of the other iterator start while the one at work goes on, and make some of
its batches too, to be compared. Then the one at work gets no more tasks, and the other one draws
from the same order at once; the loop gets what was under way in the first, then the other's
batches. So each batch comes once, in the order in which the sampler drew it.

Other settings than the code's make batches only where `Shown` says that they may, and for as long
as it does.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from ..profiler.base import torch_parts
from ..profiler.base.clock import now_ns
from ..profiler.guard.error_origin import is_ours
from .comparison import Comparison, SpotChecks, Unequal
from .driver import Driver, NoOpDriver
from .epoch import EpochStart
from .guards import Depends, reason_of
from .pools import ExhaustedIterator, PendingPool, Pool, PoolMaker, end
from .settings import Settings, settings_of
from .shown import Shown
from .torch_name import named_as


def handing_out(driver: Driver, any_random: bool = False) -> Callable[[Any], Any]:
    """What `watch.hand_out` takes for the loader that this driver tunes. With `any_random`, random
    augmentation may draw other numbers under other settings."""
    resting: list[
        Pool
    ] = []  # whose workers stay for the next iteration, which the user's own settings would not
    shown: list[Shown] = []

    def make(loader: Any) -> Any:
        if not shown or shown[0].pid != os.getpid():
            resting.clear()
            shown[:] = [Shown(loader, any_random)]
        iterator = Switching.__new__(Switching)
        iterator.__init__(loader, driver, resting, shown[0])  # type: ignore[misc]
        first = type(iterator.pool.iterator)
        iterator.__class__ = named_as(first, Switching)
        return iterator

    return make


class Switching:
    """One iteration over a tuned loader, or all of them where the loader keeps its workers."""

    def __init__(self, loader: Any, driver: Driver, resting: list[Pool], shown: Shown) -> None:
        self.driver, self.shown = driver, shown
        self._resting = resting
        # The loader holds on to the iterator of its persistent workers: no circle.
        self.loader: Callable[[], Any] = (
            weakref.ref(loader) if loader.persistent_workers else lambda: loader
        )
        self._start = EpochStart(shown)
        self._parked: dict[Settings, Pool] = {}
        self._leaving: list[Pool] = []
        before = resting.pop() if resting else None
        while resting:  # of iterations at the same time
            end(resting.pop())
        self._begin(loader, before)

    # The beginning of an epoch.

    def _begin(self, loader: Any, before: Pool | None) -> None:
        """`before`: a pool whose workers stayed for this epoch."""
        self.given = 0
        self.own = settings_of(loader)
        self.next_pool: Pool | None = None
        self._pending: PendingPool | None = None
        self._comparison: Comparison | None = None
        self.spot_checks = SpotChecks()
        self._maker = PoolMaker(loader, self.own, self.shown, self.driver)
        changed = self.shown.epoch_begins(loader, self.own)
        settings = self.driver.wanted(self.own)
        why = self.shown.why_not(self.own, settings) if settings != self.own else None
        if (
            why is None
            and settings != self.own
            and not self.shown.compared(settings)
            and self.driver.compared
        ):
            why = "its batches were not compared yet"
        if self.shown.why is not None and settings != self.own:
            self._tell(self.driver.failed, settings, Depends(self.shown.why))
        settings = self.own if why is not None else settings
        ended = before is not None and not (
            before.settings.num_workers and before.settings.persistent_workers
        )
        if before is not None and (
            before.settings != settings or ended or (before.guest and changed is not None)
        ):
            self._set_aside(before)
            before = None
        begun = self._start.begin(
            loader, self._maker, settings, before or self._parked.pop(settings, None)
        )
        self.pool, self.order = begun.pool, begun.order
        if begun.failure is not None:
            self._tell(self.driver.failed, settings, begun.failure)
        self._primed = not (self.pool.guest and not self.own.num_workers)
        if (
            self.pool.guest
            and self.pool.fetches_here
            and self.own.num_workers
            and self.own not in self._parked
        ):
            self._parked[self.own] = self._maker.reserve(self.pool.step)
        self._tell(self.driver.begun, self)

    def _set_aside(self, pool: Pool) -> None:
        """A pool that does not begin the epoch. The code's own persistent workers stay as they
        are."""
        if pool.settings == self.own and self.own.persistent_workers:
            self._parked[pool.settings] = pool
        else:
            end(pool)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """As torch calls it where the loader keeps its workers: another epoch begins."""
        before = self.pool
        self._shut_down(keep=[before, *self._own_persistent()])
        self._begin(loader, before)

    def _own_persistent(self) -> list[Pool]:
        own = self._parked.get(self.own)
        return [own] if own is not None and self.own.persistent_workers else []

    # Batches.

    def __iter__(self) -> Switching:
        return self

    def __next__(self) -> Any:
        if self.shown.pid != os.getpid():
            self._be_of_child()
        if self._leaving:
            self._reap()
        if self.next_pool is not None and self.pool.empty:
            self._go_over()
        self._ask()
        while True:
            try:
                batch = next(self.pool.iterator)
                break
            except BaseException as error:
                if self._ended(error):
                    raise
        return self._hand_over(batch)

    def _ask(self) -> None:
        """The loop asks for a batch: what it has changed, and what its sampler draws now."""
        changed = self.shown.asked(not self.pool.guest, self.pool.iterator)
        if changed is not None and (
            self.pool.guest or self.next_pool is not None or self._pending is not None
        ):
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
        index = order.handed(pool.under_way() if pool.any_order else ())
        order.catch_up()
        self.given += 1
        pool.given += 1
        if not pool.guest:
            self.shown.made(batch, self.own)
            self.spot_checks.unneeded()
        else:
            try:
                batch = self.spot_checks.checked(pool.settings, index, batch, self._made_by_own)
            except Unequal as error:
                batch = error.args[1]
                self._depends(error)
        if self._pending is not None:
            self._bring_up(self._pending, index, batch)
        self._tell(self.driver.handed, self, batch)
        return batch

    def _made_by_own(self, index: Any) -> Any:
        """The batch of this index as the code's own settings make it; None where they have no
        workers now."""
        if self.shown.any_random:
            return None
        loader, twin = self.loader(), self._parked.get(self.own)
        if not self.own.num_workers:
            return torch_parts.fetcher_of(loader).fetch(index) if loader is not None else None
        if twin is None:
            return None
        twin.make(index)
        return twin.made()

    def _ended(self, error: BaseException) -> bool:
        """Whether the loop must see this error. If not, the batch is made again, with the user's
        own settings."""
        pool, order = self.pool, self.order
        if isinstance(pool.iterator, ExhaustedIterator):
            return True
        if isinstance(error, StopIteration) and order.drained and not order.waiting:
            self._come_to_the_end()
            return True
        of_sampler = order.raised(error)
        # With workers torch draws ahead, and loses a batch to a sampler that fails; without, it
        # does not.
        if (not of_sampler or not self.own.num_workers) and self._recovers(error):
            if of_sampler:
                order.put_off(error)
            else:
                torch_parts.kill_if_stuck(pool.iterator, error)
                if isinstance(error, Depends):
                    error = Depends(reason_of(error))
                    self.shown.end(error.args[0])
                self._tell(self.driver.failed, pool.settings, error)
            self._fall_back()
            return False
        if pool.any_order:
            order.handed(pool.under_way())  # the one that is lost
        rest = torch_parts.under_way(pool.iterator)
        if self.next_pool is not None:
            rest += torch_parts.under_way(self.next_pool.iterator)
        order.keep(rest)
        # Idle workers are told to end while that reaches the loop: once the error has made garbage
        # of all, torch waits for each worker 5 s in vain, and kills it.
        self._drop_pending()
        self._release(list(self._parked))
        return True

    def _come_to_the_end(self) -> None:
        pool = self.pool
        self.shown.epoch_ends(self.order.handed_over)
        self._shut_down(keep=[pool, *self._own_persistent()])
        self._tell(self.driver.ended, self)
        if not self.own.persistent_workers:
            self.loader = (
                _none  # a loader that is made anew each epoch lives no longer than without us
            )
            if pool.settings.persistent_workers and pool.settings.num_workers:
                self._resting.append(pool)
                self.pool = Pool(ExhaustedIterator(pool.iterator), pool.settings, pool.guest)

    def _recovers(self, error: BaseException) -> bool:
        """Whether this may be for the settings alone, and the batches can be made again."""
        return self.pool.guest and self.loader() is not None and is_ours(error)

    # Back to the settings of the code.

    def _depends(self, error: Exception) -> None:
        """What other settings have made ready may differ from what the code's own would make
        now."""
        self.shown.end(reason_of(error))
        self._tell(self.driver.failed, (self.next_pool or self.pool).settings, error)
        self._drop_pending()
        # Workers of the code's own would have begun with the epoch, and would not see what the loop
        # changes either.
        stale = bool(self.own.num_workers) and not self.settings.num_workers
        if not self.own.num_workers or stale or isinstance(error, Unequal):
            self._fall_back()

    def _fall_back(self) -> None:
        """All that was drawn and not handed over is made anew, with the user's own settings."""
        self._drop_pending()
        if self.next_pool is not None:
            self._dismiss(self.next_pool)
            self.next_pool = None
        before = self.pool
        if before.guest:
            self.order.give_back(0)
            own = self._parked.pop(self.own) if self.own in self._parked else None
            self.pool = self._maker.own_again(before.step) if own is None else own
            self._dismiss(before)
        else:  # it goes on, with what it has under way
            self.order.give_back(torch_parts.under_way(before.iterator))
        self._primed = True
        self.pool.draw_from(self.order)
        self._account()
        self._tell(self.driver.switched, self, self.own)

    def _be_of_child(self) -> None:
        """The program has forked, and its child goes on with this iteration: no worker is the
        child's."""
        self.shown = Shown(self.loader(), self.shown.any_random)
        self.driver = NoOpDriver(self.driver.pools)
        self._parked, self._leaving, self._pending = {}, [], None
        if not self.own.num_workers and (self.pool.guest or self.next_pool is not None):
            self._maker = PoolMaker(self.loader(), self.own, self.shown, self.driver)
            self.order.give_back(0)
            self.pool, self.next_pool = self._maker.own_again(None), None
            self.pool.draw_from(self.order)

    # Switching.

    @property
    def settings(self) -> Settings:
        """Of the batches drawn now."""
        return (self.next_pool or self.pool).settings

    def why_not(self, settings: Settings) -> str | None:
        """Why these settings must not make the loader's batches; None where they may."""
        return self.shown.why_not(self.own, settings)

    @property
    def why_never(self) -> str | None:
        """Why no other settings may make the loader's batches; None where some may."""
        return self.shown.why

    def switch(self, settings: Settings) -> bool:
        """Batches are made with these as soon as may be: those drawn from now on, or from when the
        workers for it have started and have made the same batches as the code's own settings. Asked
        for with each batch until then; not asked for again, it is given up. False where it is not
        possible now."""
        if self._pending is not None and self._pending.settings != settings:
            self._drop_pending()
        if settings == self.settings:
            return True
        if self._pending is not None:
            self._pending.wanted = True
            return True
        order = self.order
        if (
            self.next_pool is not None
            or self.loader() is None
            or order.drained
            or order.ends_soon
            or order.fails
        ):
            return False
        if settings != self.own and self.why_not(settings) is not None:
            return False
        if (parked := self._parked.pop(settings, None)) is not None:
            return self._turn_to(parked, now_ns())
        if self.own.num_workers and settings.num_workers and self.shown.changed_in_epoch:
            # workers begun now would have what those of the user's own settings have with the next
            # epoch
            return False
        return self._trying(settings, lambda: self._make(settings))

    def _trying(self, settings: Settings, act: Callable[[], bool]) -> bool:
        """Of an error in it, the loop learns nothing."""
        try:
            return act()
        except Exception as error:
            if not is_ours(error):
                raise
            self._drop_pending()
            if isinstance(error, Unequal | Depends):
                error = Depends(reason_of(error))  # a worker's comes with its traceback
                if self.own.num_workers and not settings.num_workers and not settings.batched:
                    self.shown.why_not_here = self.shown.why_not_here or error.args[0]
                else:
                    self.shown.end(error.args[0])
            self._tell(self.driver.failed, settings, error)
            return False

    def _make(self, settings: Settings) -> bool:
        began_ns = now_ns()
        here = bool(self.own.num_workers) and not settings.num_workers and not settings.batched
        first = here and not self.shown.shown_here
        self._pending = (self._maker.witness if first else self._maker.later)(
            settings, self.pool.step
        )
        compares = settings != self.own and not self.shown.any_random
        self._comparison = Comparison(self._pending.pool, self.driver.compared if compares else 0)
        self._held_up(began_ns)
        return bool(self._comparison.done and self._pending.ready) and self._turn_to_pending(
            self._pending
        )

    def _bring_up(self, pending: PendingPool, index: Any, batch: Any) -> None:
        """A batch is about to be handed over while another pool is being made ready."""
        if not pending.wanted or self.order.drained or self.order.ends_soon or self.order.fails:
            self._drop_pending()
        else:
            pending.wanted = False
            self._trying(pending.settings, lambda: self._readier(pending, index, batch))

    def _readier(self, pending: PendingPool, index: Any, batch: Any) -> bool:
        """Starts some more workers, less than one step long and the start of one; compares once all
        have started."""
        began_ns = now_ns()
        if pending.workers is not None and not pending.workers.started:
            pending.workers.start(began_ns - pending.last_ns if pending.last_ns else 0)
            pending.last_ns = now_ns()
            self._held_up(began_ns)
        assert self._comparison is not None
        if pending.ready and not self._comparison.done:
            self._comparison.handed(index, batch)
            self._held_up(began_ns)
        return pending.ready and self._comparison.done and self._turn_to_pending(pending)

    def _turn_to_pending(self, pending: PendingPool) -> bool:
        if pending.pool.settings != pending.settings:
            self.shown.shown_here = True
            self._drop_pending()
            return False
        self._pending = self._comparison = None
        if pending.pool.guest:
            self.shown.note_compared(pending.pool.settings)
        elif pending.workers is not None:
            torch_parts.watch_over(pending.pool.iterator)
        return self._turn_to(pending.pool, now_ns())

    def _turn_to(self, pool: Pool, began_ns: int) -> bool:
        """Batches that are drawn from now on are this pool's."""
        taken = len(self.order.waiting)
        try:
            pool.draw_from(self.order)
        except Exception as error:
            if not is_ours(error):
                raise
            self.order.give_back(taken)
            end(pool)
            if self.order.raised(error):
                self.order.put_off(error)
            else:
                self._tell(self.driver.failed, pool.settings, error)
            return False
        torch_parts.hold(self.pool.iterator)
        self.next_pool = pool
        self._held_up(began_ns)
        return True

    def _go_over(self) -> None:
        """The loop has had all that the pool was making."""
        before, after = self.pool, self.next_pool
        assert after is not None
        self.pool, self.next_pool = after, None
        if before.step is not None:
            before.step.paused(now_ns())
        self._account()
        if (
            not before.settings.num_workers
            or self.driver.keeps(before.settings)
            or self._stays(before.settings)
        ):
            self._parked[before.settings] = before
        else:
            self._dismiss(before)
        self._tell(self.driver.switched, self, after.settings)

    def _held_up(self, began_ns: int) -> None:
        """The loop has waited since then for what switching does."""
        if self.pool.step is not None:
            self.pool.step.held_up(now_ns() - began_ns)

    def _account(self) -> None:
        """How many batches of the epoch are others', for the pool at work now."""
        step = self.pool.step
        if step is not None:
            step.others = self.given - step.batches
            step.waiting_for_first = not self.given

    # Pools that are done with.

    def release_unwanted(self) -> None:
        """Let go of workers that the driver no longer wants."""
        unwanted = [
            each for each in self._parked if not self.driver.keeps(each) and not self._stays(each)
        ]
        self._release(unwanted)

    def _stays(self, settings: Settings) -> bool:
        """Whether these are workers of the code's own that may be needed again: the only ones,
        where this process makes the batches, that have the data set as it was when the epoch
        began."""
        here = self.settings != self.own and not self.settings.num_workers
        return settings == self.own and (
            self.own.persistent_workers or (here and bool(self.own.num_workers))
        )

    def _release(self, parked: list[Settings]) -> None:
        for settings in parked:
            self._dismiss(self._parked.pop(settings))

    def _drop_pending(self) -> None:
        pending, self._pending, self._comparison = self._pending, None, None
        if pending is not None:
            self._dismiss(pending.pool)

    def _dismiss(self, pool: Pool) -> None:
        """Its workers are told to end."""
        if pool.step is not None:
            pool.step.left()
        if pool.settings.num_workers:
            torch_parts.dismiss(pool.iterator)
            self._leaving.append(pool)

    def _reap(self) -> None:
        """Those whose workers have ended cost no waiting now."""
        gone = [pool for pool in self._leaving if torch_parts.dismissed(pool.iterator)]
        self._leaving = [pool for pool in self._leaving if pool not in gone]
        for pool in gone:
            pool.iterator._shutdown_workers()

    def _shut_down(self, keep: list[Pool]) -> None:
        """Ends all workers but those of these pools."""
        self._drop_pending()
        others = [each for each in (self.next_pool, self.pool) if each is not None]
        for pool in dict.fromkeys([*self._leaving, *others, *self._parked.values()]):
            if pool not in keep:
                end(pool)
        self._parked = {each: pool for each, pool in self._parked.items() if pool in keep}
        self._leaving, self.next_pool = [], None

    def _shutdown_workers(self) -> None:
        """As torch's own: frameworks call it to be rid of persistent workers."""
        self._shut_down(keep=[])

    def _tell(self, what: Callable[..., None], *args: Any) -> None:
        try:
            what(*args)
        except Exception as error:
            if not is_ours(error):
                raise
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Deciding has failed: nothing is decided any more."""
        try:
            self.driver.failed(self.settings, error)
        except Exception as another:
            if not is_ours(another):
                raise
        self.driver = NoOpDriver(self.driver.pools)

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


def _none() -> None: ...
