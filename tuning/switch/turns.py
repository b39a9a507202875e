"""Pools take turns over one epoch's order of batches.

To switch, the workers of another pool start while the current one goes on, and remake some of its
batches for a comparison. Then the current pool gets no more tasks, and the other one draws from the
same order. The loop gets what was under way in the first, then the other's batches. So each batch
comes once, in the order in which the sampler drew it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...profiler.base import torch_parts
from ...profiler.base.clock import now_ns
from ...profiler.guard.error_origin import is_ours
from ..evidence.evidence import Evidence
from ..evidence.guards import Depends, reason_of
from ..evidence.settings import Settings
from .comparison import PendingPool, SpotChecks, Unequal
from .driver import Driver
from .order import Order
from .pools import IdlePools, Pool, PoolMaker


class Turns:
    """Other settings than the code's make batches only for as long as `Evidence` allows it."""

    loader: Callable[[], Any]
    own: Settings  # of the code
    order: Order
    pool: Pool  # that the next batch comes from
    next_pool: Pool | None  # that draws already, once there is one
    given: int  # batches of the epoch
    waited_ns: int  # by the loop, for the last one
    spot_checks: SpotChecks
    _maker: PoolMaker
    _pending: PendingPool | None
    _primed: bool  # whether the pool has begun to draw

    def __init__(self, driver: Driver, evidence: Evidence) -> None:
        self.driver, self.evidence = driver, evidence
        self.waited_ns = 0
        self._idle = IdlePools()

    @property
    def settings(self) -> Settings:
        """Of the batches that are drawn now."""
        return (self.next_pool or self.pool).settings

    def why_not(self, settings: Settings) -> str | None:
        """Why these settings must not make the loader's batches; None if they may."""
        return self.evidence.why_not(self.own, settings)

    @property
    def why_never(self) -> str | None:
        """Why no other settings may make the loader's batches; None if some may."""
        return self.evidence.why

    def switch(self, settings: Settings) -> bool:
        """Use these settings as soon as possible: for the batches drawn from now on, or once the
        workers have started and have made the same batches as the code's own settings. Call it with
        each batch until then; otherwise it is given up. False if it is not possible now."""
        if self._pending is not None and self._pending.settings != settings:
            self._drop_pending()
        if settings == self.settings:
            return True
        if self._pending is not None:
            self._pending.wanted = True
            return True
        if self.next_pool is not None or self.loader() is None or self.order.over:
            return False
        if settings != self.own and self.why_not(settings) is not None:
            return False
        if (parked := self._idle.parked.pop(settings, None)) is not None:
            return self._turn_to(parked, now_ns())
        if self.own.num_workers and settings.num_workers and self.evidence.changed_in_epoch:
            return False  # the code's own workers began before that, and have not seen it
        return self._trying(settings, lambda: self._make(settings))

    def release_unwanted(self) -> None:
        """End the workers that the driver no longer wants."""
        self._idle.release_parked(self._keeps)

    def _keeps(self, settings: Settings) -> bool:
        """The code's own workers stay while this process makes the batches: only they have the data
        set as it was when the epoch began."""
        here = self.settings != self.own and not self.settings.num_workers
        needed = self.own.persistent_workers or (here and bool(self.own.num_workers))
        return self.driver.keeps(settings) or (settings == self.own and needed)

    # Another pool.

    def _trying(self, settings: Settings, act: Callable[[], bool]) -> bool:
        """Run something whose errors the loop must not see."""
        try:
            return act()
        except Exception as error:
            if not is_ours(error):
                raise
            self._drop_pending()
            if isinstance(error, Depends):
                error = Depends(reason_of(error))  # a worker's comes with its traceback
                if self.own.num_workers and not settings.num_workers:
                    self.evidence.why_not_here = self.evidence.why_not_here or error.args[0]
                else:
                    self.evidence.end(error.args[0])
            self._tell(self.driver.failed, settings, error)
            return False

    def _make(self, settings: Settings) -> bool:
        began_ns, first = now_ns(), self.pool.step
        here = self.own.num_workers > 0 and not settings.num_workers
        witness = here and not self.evidence.nothing_changed_here
        if settings == self.own:
            pool = self._maker.own_again(first, later=True)
        else:
            held = settings.with_workers(1) if witness else settings
            pool = self._maker.guest(held, first, later=True, witness=witness)
        compares = settings != self.own and not self.evidence.any_random
        self._pending = PendingPool(pool, settings, self.driver.compared if compares else 0)
        self._held_up(began_ns)
        return self._pending.ready and self._turn_to_pending(self._pending)

    def _go_on_with(self, pending: PendingPool, index: Any, batch: Any) -> None:
        """A batch is about to be handed over while another pool is being made ready."""

        def act() -> bool:
            began_ns = now_ns()
            pending.handed(index, batch)
            self._held_up(began_ns)
            return pending.ready and self._turn_to_pending(pending)

        if not pending.wanted or self.order.over:
            self._drop_pending()
        else:
            pending.wanted = False
            self._trying(pending.settings, act)

    def _turn_to_pending(self, pending: PendingPool) -> bool:
        pool, began_ns = pending.pool, now_ns()
        if pool.settings != pending.settings:
            self.evidence.nothing_changed_here = True
            self._drop_pending()
            return False
        if self.own.num_workers and pool.settings.num_workers:
            changed = self.evidence.changed_since_workers_began()
            if changed is not None:
                raise Depends(f"the loop changes {changed} between batches")
        self._pending = None
        if pool.guest:
            self.evidence.compared.add(pool.settings.num_workers)
        elif pool.settings.num_workers:
            torch_parts.watch_over(pool.iterator)
        return self._turn_to(pool, began_ns)

    def _turn_to(self, pool: Pool, began_ns: int) -> bool:
        """This pool makes the batches that are drawn from now on."""
        taken = len(self.order.waiting)
        try:
            pool.draw_from(self.order)
        except Exception as error:
            if not is_ours(error):
                raise
            self.order.give_back(taken)
            pool.end()
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
        """The loop has had all batches of the pool."""
        before, after = self.pool, self.next_pool
        assert after is not None
        self.pool, self.next_pool = after, None
        if before.step is not None:
            before.step.paused(now_ns())
        self._account()
        if not before.settings.num_workers or self._keeps(before.settings):
            self._idle.parked[before.settings] = before
        else:
            self._idle.release(before)
        self._tell(self.driver.switched, self, after.settings)

    def _held_up(self, began_ns: int) -> None:
        """Switching has made the loop wait since then."""
        held_ns = now_ns() - began_ns
        self.waited_ns += held_ns
        if self.pool.step is not None:
            self.pool.step.held_up(held_ns)

    def _account(self) -> None:
        """Tell the pool's recorder how many batches of the epoch are others'."""
        step = self.pool.step
        if step is not None:
            step.others = self.given - step.batches
            step.waiting_for_first = not self.given

    def _drop_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._idle.release(pending.pool)

    # Back to the settings of the code.

    def _depends(self, error: Exception) -> None:
        """What other settings have made may differ from what the code's own would make now."""
        self.evidence.end(reason_of(error))
        self._tell(self.driver.failed, self.settings, error)
        self._drop_pending()
        # Workers of the code's own would have begun with the epoch, and would not see what the loop
        # changes either.
        if not (self.own.num_workers and self.settings.num_workers) or isinstance(error, Unequal):
            self._fall_back()

    def _fall_back(self) -> None:
        """Make all that was drawn and not handed over again, with the user's own settings."""
        self._drop_pending()
        if self.next_pool is not None:
            self._idle.release(self.next_pool)
            self.next_pool = None
        before = self.pool
        if before.guest:
            self.order.give_back(0)
            parked = self._idle.parked.pop(self.own, None)
            self.pool = self._maker.own_again(before.step) if parked is None else parked
            self._idle.release(before)
        else:  # it goes on, with what it has under way
            self.order.give_back(torch_parts.under_way(before.iterator))
        self._primed = True
        self.pool.draw_from(self.order)
        self._account()
        self._tell(self.driver.switched, self, self.own)

    # The driver.

    def _tell(self, what: Callable[..., None], *args: Any) -> None:
        """Tell the driver. If it fails, nothing more is decided."""
        try:
            what(*args)
        except Exception as error:
            if not is_ours(error):
                raise
            self._lose(what, error)

    def _lose(self, what: Callable[..., None], error: Exception) -> None:
        """The driver failed at this."""
        driver, self.driver = self.driver, Driver(self.driver.pools)
        if what != driver.failed:
            self._tell(driver.failed, self.settings, error)
