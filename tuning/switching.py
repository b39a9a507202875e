"""What a tuned loader hands to the loop: an iterator behind which others take turns.

To switch, the iterator at work is given no more tasks, and the other one begins to draw from the same order at once;
the loop gets what was under way in the first, then the other's batches. So each batch comes once, in the order in which
the sampler drew it, and the workers of the other work before the loop needs them: they start while the one at work goes
on, one by one between the loop's steps.

An iterator that was switched away from may be kept, its workers idle: a pool that takes turns with another starts once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ..profiler.base import torch_parts
from ..profiler.base.clock import now_ns
from ..profiler.guard.error_origin import is_ours
from ..profiler.iterate.watch import iterator_like
from .apart import Shared, connections_of, left_to_workers
from .data_state import Changed, state_of
from .drawn_order import DrawnOrder, Sampler, StandIn
from .driver import Driver, Still
from .later_workers import ApartWorkers, LaterWorkers, forks
from .pools import Coming, Over, Pool, end
from .random_streams import epoch_seed, fetching_apart, fresh_generator, numbered_seed
from .settings import Settings, settings_of
from .torch_name import named_as
from .whole_batches import whole_batches


def handing_out(driver: Driver) -> Callable[[Any], Any]:
    """What `watch.hand_out` takes for the loader that this driver tunes."""
    rested: list[Pool] = []  # whose workers are kept for the next iteration, which the user's own settings would not
    shared = Shared()

    def make(loader: Any) -> Any:
        iterator = Switching.__new__(Switching)
        iterator.__init__(loader, driver, rested, shared)  # type: ignore[misc]
        first = type(iterator.pool.iterator)
        iterator.__class__ = named_as(first, Switching)
        return iterator

    return make


class Switching:
    """One iteration over a tuned loader, or all of them where the loader keeps its workers."""

    def __init__(self, loader: Any, driver: Driver, rested: list[Pool], shared: Shared) -> None:
        self.driver = driver
        self._rested, self._shared = rested, shared
        # The loader holds on to the iterator of its persistent workers: no circle.
        self.loader: Callable[[], Any] = weakref.ref(loader) if loader.persistent_workers else lambda: loader
        self.next_pool: Pool | None = None
        self._coming: Coming | None = None
        self._parked: dict[Settings, Pool] = {}
        self._leaving: list[Pool] = []
        self._seed_drawn = False
        before = rested.pop() if rested else None
        while rested:  # of iterations at the same time
            end(rested.pop())
        self._begin(loader, before)

    # The beginning of an epoch.

    def _begin(self, loader: Any, before: Pool | None) -> None:
        self.given = 0
        self.own = settings_of(loader)
        self._state, self._changed = state_of(loader), False
        settings = self.driver.wanted(self.own)
        if before is not None and before.guest and before.state != self._state:
            why = "the program changes its data set between epochs, which kept workers do not see"
            self._tell(self.driver.failed, before.settings, Changed(why))
            settings = self.driver.wanted(self.own)
            end(before)
            before = None
        if before is not None and not (before.settings == settings and settings.persistent_workers):
            end(before)
            before = None
        try:
            if settings.batched:
                whole_batches(loader)  # raises what it may before anything is drawn from the random streams
            self.pool, self.order = self._first(loader, settings, before)
        except Exception as error:
            if settings == self.own or not is_ours(error):
                raise
            self.driver.failed(settings, error)
            self.pool, self.order = self._first(loader, self.own, None)
        self._tell(self.driver.begun, self)

    def _first(self, loader: Any, settings: Settings, reused: Pool | None) -> tuple[Pool, DrawnOrder]:
        """The first pool of an epoch. Of the random streams it takes what the user's own settings would."""
        own_draws = not (self.own.persistent_workers and self._seed_drawn)
        if settings == self.own and (own_draws or reused is not None):
            self._seed_drawn = True
            sampler = Sampler(loader._index_sampler)
            if reused is None:
                return self._made(loader, settings, sampler, loader.generator, None), _order(sampler)
        else:
            source = iter(loader._index_sampler)
            if own_draws:
                self._seed_drawn = True
                seed = epoch_seed(loader)
                for _ in range(1, torch_parts.samplers_begun(self.own.num_workers > 0)):
                    source = iter(loader._index_sampler)
            else:
                seed = self._further_seed(loader)
            sampler = Sampler(loader._index_sampler, DrawnOrder(source))
            if reused is None:
                return self._made(loader, settings, sampler, fresh_generator(seed), None), _order(sampler)
        iterator = reused.iterator
        iterator._index_sampler = sampler
        try:
            iterator._reset(loader)
        finally:
            iterator._index_sampler = loader._index_sampler
        return reused, _order(sampler)

    def _made(
        self, loader: Any, settings: Settings, sampler: Sampler, generator: Any, first: Any, context: Any = None
    ) -> Pool:
        guest = settings != self.own
        apart = context
        if context is None and (guest or self.driver.pools):
            apart = ApartWorkers(loader.multiprocessing_context)  # this process may have fetched, which it would not
        stand_in = StandIn(loader, settings, sampler, generator, guest=guest, context=apart)
        iterator = iterator_like(loader, stand_in, settings.num_workers, first)
        iterator._index_sampler = loader._index_sampler
        if settings.num_workers:
            torch_parts.start_feeding(iterator)
        if settings.num_workers and (guest or context is not None):
            torch_parts.let_die(iterator)
        elif guest and self.own.num_workers and not settings.batched:  # what is looked up draws and opens nothing
            fetching_apart(iterator, self._further_seed(loader))
        pool = Pool(iterator, settings, guest)
        pool.state = state_of(loader) if guest else []
        return pool

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """As torch calls it where the loader keeps its workers: another epoch begins."""
        before, self.next_pool = self.pool, None
        self._end_others(keep=before)
        self._begin(loader, before)

    # Batches.

    def __iter__(self) -> Switching:
        return self

    def __next__(self) -> Any:
        if self._leaving:
            self._see_off()
        if self.next_pool is not None and self.pool.empty:
            self._go_over()
        loader = self.loader()
        before = None if self.pool.settings.num_workers or loader is None else self._shared.before(loader)
        while True:
            try:
                batch = next(self.pool.iterator)
                break
            except BaseException as error:
                if self._ended(error):
                    raise
        order = self.order
        order.handed(self.pool.under_way() if self.pool.any_order else ())
        self.given += 1
        if loader is not None:
            self._look(loader, before)
        self._tell(self.driver.handed, self, batch)
        if self._coming is not None:
            self._bring_up()
        return batch

    def _ended(self, error: BaseException) -> bool:
        """Whether the loop must see this error. If not, the batch is made again, with the user's own settings."""
        pool, order = self.pool, self.order
        if isinstance(pool.iterator, Over):
            return True
        at_end = isinstance(error, StopIteration) and order.drained and not order.waiting
        if at_end:
            self._end_others(keep=pool)
            self._tell(self.driver.ended, self)
            if not self.own.persistent_workers:
                self.loader = _none  # a loader that is made anew each epoch lives no longer than without us
                if pool.settings.persistent_workers and pool.settings.num_workers:
                    self._rested.append(pool)
                    self.pool = Pool(Over(pool.iterator), pool.settings, pool.guest)
            return True
        of_sampler = order.raised(error)
        # With workers torch draws ahead, and loses a batch to a sampler that fails; without, it does not.
        if (not of_sampler or not self.own.num_workers) and self._recovers(error):
            if of_sampler:
                order.put_off(error)
            else:
                torch_parts.kill_if_stuck(pool.iterator, error)
                self.driver.failed(pool.settings, error)
            self._fall_back()
            return False
        if pool.any_order:
            order.handed(pool.under_way())  # the one that is lost
        rest = torch_parts.under_way(pool.iterator)
        if self.next_pool is not None:
            rest += torch_parts.under_way(self.next_pool.iterator)
        order.keep(rest)
        # Idle workers are told to end while that reaches them: once the error has made garbage of all, torch waits for
        # each worker 5 s in vain, and kills it.
        self._give_up_coming()
        self._let_go(self._parked)
        return True

    def _look(self, loader: Any, before: Any) -> None:
        """Whether what makes this batch is as it would be with the user's own settings. If not, it makes no more."""
        why: Exception | None = None
        if before is not None:
            self._shared.after(before, loader)
            if self.own.num_workers and self.pool.guest and forks(loader.multiprocessing_context):
                why = self._shared.why_left()
                if why is not None:
                    left_to_workers(self.pool.iterator)
        elif self.pool.settings.num_workers and not self.own.num_workers and not self.given & (self.given - 1):
            changed = state_of(loader) != self.pool.state
            why = Changed("the loop changes the data set, which workers do not see") if changed else None
        if why is not None:
            self._tell(self.driver.failed, self.pool.settings, why)
            self._fall_back()

    def _recovers(self, error: BaseException) -> bool:
        """Whether this may be for the settings alone, and the batches can be made again."""
        return self.pool.guest and self.loader() is not None and is_ours(error)

    def _fall_back(self) -> None:
        """All that was drawn and not handed over is made anew, with the user's own settings."""
        before, self.order = self.pool, self.order
        self.order.give_back(0)
        step = before.step
        sampler = Sampler(None, self.order)
        loader, shift = self.loader(), self.order.drawn
        self.pool = self._made(loader, self.own, sampler, fresh_generator(self._further_seed(loader)), step)
        self.pool.shift = shift
        if step is not None:
            step.left()
        self._account()
        self._leaving.append(before)
        self._end_others(keep=self.pool)
        self._tell(self.driver.switched, self, self.own)

    # Switching.

    @property
    def settings(self) -> Settings:
        """Of the batches drawn now."""
        return (self.next_pool or self.pool).settings

    def why_unsafe(self, settings: Settings) -> str | None:
        """Why the data set cannot be used under these settings as it is under those at work; None where it can."""
        loader = self.loader()
        if loader is None or not forks(loader.multiprocessing_context):
            return None
        if settings.num_workers:
            return self._shared.why_not_forked()
        workers = getattr(self.pool.iterator, "_workers", ())
        names = ", ".join(sorted(connections_of([each.pid for each in workers])))
        why = f"each worker is connected to {names}: workers begun later would share the training process's connection"
        return why if names else None

    def switch(self, settings: Settings) -> bool:
        """Batches are made with these as soon as may be: those drawn from now on, or from when the workers for it have
        started. Asked for with each batch until then; not asked for again, it is given up. False where it is not
        possible now."""
        if self._coming is not None and self._coming.pool.settings != settings:
            self._give_up_coming()
        if settings == self.settings:
            return True
        if self._coming is not None:
            self._coming.wanted = True
            return True
        loader = self.loader()
        if self.next_pool is not None or loader is None or self.order.drained or self.order.fails:
            return False
        if self.own.num_workers and settings.num_workers and self._has_changed(loader):
            return False  # workers begun now would have what those of the user's own settings have with the next epoch
        if (parked := self._parked.pop(settings, None)) is not None:
            return self._turn_to(parked, now_ns())
        return self._trying(settings, lambda: self._make(loader, settings))

    def _has_changed(self, loader: Any) -> bool:
        """Whether the data set is another than at the epoch's begin."""
        self._changed = self._changed or state_of(loader) != self._state
        return self._changed

    def _trying(self, settings: Settings, act: Callable[[], bool]) -> bool:
        """Of an error in it, the loop learns nothing."""
        try:
            return act()
        except Exception as error:
            if not is_ours(error):
                raise
            self._give_up_coming()
            self.driver.failed(settings, error)
            return False

    def _make(self, loader: Any, settings: Settings) -> bool:
        began_ns = now_ns()
        generator = fresh_generator(self._further_seed(loader))
        workers = LaterWorkers(loader.multiprocessing_context) if settings.num_workers else None
        nothing_yet = Sampler(None, DrawnOrder(iter(())))
        pool = self._made(loader, settings, nothing_yet, generator, self.pool.step, workers)
        if workers is None:
            return self._turn_to(pool, began_ns)
        self._coming = Coming(pool, workers)
        if self.pool.step is not None:
            self.pool.step.held_up(now_ns() - began_ns)
        return True

    def _bring_up(self) -> None:
        """A batch was handed over while workers are being started."""
        coming = self._coming
        assert coming is not None
        if not coming.wanted or self.order.drained or self.order.fails:
            self._give_up_coming()
        else:
            coming.wanted = False
            self._trying(coming.pool.settings, lambda: self._started(coming))

    def _started(self, coming: Coming) -> bool:
        """Starts some more, and turns to them once all are ready. Less than one step long, and the start of one."""
        began_ns = now_ns()
        if not coming.workers.started:
            spent_ns = began_ns - coming.last_ns if coming.last_ns else 0
            coming.workers.start(spent_ns)
            coming.last_ns = now_ns()
            if self.pool.step is not None:
                self.pool.step.held_up(coming.last_ns - began_ns)
        if not coming.workers.ready:
            return False
        self._coming = None
        if not coming.pool.guest:
            torch_parts.watch_over(coming.pool.iterator)
        return self._turn_to(coming.pool, now_ns())

    def _turn_to(self, pool: Pool, began_ns: int) -> bool:
        """Batches that are drawn from now on are this pool's."""
        kept, before = len(self.order.waiting), self.pool
        pool.shift = self.order.drawn - torch_parts.next_task(pool.iterator)
        try:
            torch_parts.go_on(pool.iterator, self.order)
        except Exception as error:
            if not is_ours(error):
                raise
            self.order.give_back(kept)
            end(pool)
            if self.order.raised(error):
                self.order.put_off(error)
            else:
                self.driver.failed(pool.settings, error)
            return False
        torch_parts.hold(before.iterator)
        self.next_pool = pool
        if before.step is not None:
            before.step.held_up(now_ns() - began_ns)
        return True

    def _give_up_coming(self) -> None:
        coming, self._coming = self._coming, None
        if coming is not None:
            self._dismiss(coming.pool)

    def _go_over(self) -> None:
        """The loop has had all that the pool was making."""
        before, after = self.pool, self.next_pool
        assert after is not None
        self.pool, self.next_pool = after, None
        if after.guest and (loader := self.loader()) is not None:
            after.state = state_of(loader)  # this process, which fetched until now, may have changed it itself
        if before.step is not None:
            before.step.paused(now_ns())
        self._account()
        if before.settings.num_workers and not self.driver.keeps(before.settings):
            self._dismiss(before)
        else:
            self._parked[before.settings] = before
        self._tell(self.driver.switched, self, after.settings)

    def _account(self) -> None:
        """How many batches of the epoch are others', for the pool at work now."""
        step = self.pool.step
        if step is not None:
            step.others = self.given - step.batches
            step.waiting_for_first = not self.given

    def _further_seed(self, loader: Any) -> int:
        self.driver.pools += 1
        return numbered_seed(loader, self.driver.pools)

    # Pools that are done with.

    def tidy(self) -> None:
        """Let go of kept workers that the driver no longer wants."""
        self._let_go([each for each in self._parked if not self.driver.keeps(each)])

    def _let_go(self, parked: Iterable[Settings]) -> None:
        for settings in list(parked):
            self._dismiss(self._parked.pop(settings))

    def _dismiss(self, pool: Pool) -> None:
        if pool.step is not None:
            pool.step.left()
        if pool.settings.num_workers:
            torch_parts.dismiss(pool.iterator)
            self._leaving.append(pool)

    def _see_off(self) -> None:
        """Those whose workers have ended cost no waiting now."""
        gone = [pool for pool in self._leaving if torch_parts.dismissed(pool.iterator)]
        self._leaving = [pool for pool in self._leaving if pool not in gone]
        for pool in gone:
            pool.iterator._shutdown_workers()

    def _end_others(self, keep: Pool | None) -> None:
        self._give_up_coming()
        others = [*self._parked.values(), *self._leaving, *([self.next_pool] if self.next_pool is not None else [])]
        if keep is not self.pool:
            others.append(self.pool)
        self._parked, self._leaving, self.next_pool = {}, [], None
        for pool in others:
            end(pool)

    def _shutdown_workers(self) -> None:
        """As torch's own: frameworks call it to be rid of persistent workers."""
        self._end_others(keep=None)

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
        self.driver = Still(self.driver.pools)

    # All else is the iterator's at work.

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


def _order(sampler: Sampler) -> DrawnOrder:
    assert sampler.order is not None
    return sampler.order
