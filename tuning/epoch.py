"""The beginning of an epoch: what torch draws from the random streams then is drawn at the same
moments, in the same order and once, whoever is to make the batches."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..profiler.base import torch_parts
from ..profiler.guard.error_origin import is_ours
from .order import Order
from .pools import Pool, PoolMaker, SamplerView
from .samplers import generator_of
from .settings import Settings, settings_of
from .shown import Shown
from .streams import epoch_seed, fresh_generator


class Begun(NamedTuple):
    pool: Pool
    order: Order
    failure: Exception | None  # why the settings that were wanted could not begin it


class EpochStart:
    """Of all epochs of one iterator."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._seed_drawn = False  # which loaders that keep their workers draw once

    def begin(
        self, loader: Any, maker: PoolMaker, settings: Settings, before: Pool | None
    ) -> Begun:
        """With these settings, by `before` if its workers stayed; with the code's own where that
        fails. Raises what the sampler raises, and what the code's own settings raise."""
        own = settings_of(loader)
        draws_seed = not (own.persistent_workers and self._seed_drawn)
        self._seed_drawn = True

        def new_order(source: Any) -> Order:
            generator, shown = generator_of(loader._index_sampler), self._shown
            order = Order(source, own.ahead, generator)
            order.may_draw_early = shown.draws_early
            order.draw_with = lambda draw: shown.draw(draw, generator)
            return order

        if settings == own and (draws_seed or before is not None):
            return self._by_own(loader, maker, before, new_order)
        return self._by_guest(loader, maker, settings, before, new_order, draws_seed)

    def _by_own(self, loader: Any, maker: PoolMaker, before: Pool | None, new_order: Any) -> Begun:
        """As torch does it."""
        sampler = SamplerView(loader._index_sampler, new_order)
        pool = (
            maker.own(sampler, loader.generator)
            if before is None
            else _reset(before, loader, sampler)
        )
        assert sampler.order is not None
        return Begun(pool, sampler.order, None)

    def _by_guest(
        self,
        loader: Any,
        maker: PoolMaker,
        settings: Settings,
        before: Pool | None,
        new_order: Any,
        draws_seed: bool,
    ) -> Begun:
        own = settings_of(loader)
        source = iter(loader._index_sampler)
        stream = _stream_of(loader)
        state = stream.get_state()
        if draws_seed:
            epoch_seed(loader)
            for _ in range(1, torch_parts.samplers_begun(own.num_workers > 0)):
                source = iter(loader._index_sampler)
            if own.num_workers:
                torch_parts.check_number_of_workers(loader)
        after = stream.get_state()
        order = new_order(source)
        order.catch_up()
        failure = None
        if settings != own:
            try:
                pool = (
                    _reset(before, loader, _Drawn(order))
                    if before is not None
                    else maker.guest(settings, None)
                )
                if own.num_workers:
                    pool.draw_from(order)
                return Begun(pool, order, None)
            except Exception as error:
                if not is_ours(error) or order.raised(error):
                    raise
                failure = error
                order.give_back(0)
        # Torch draws the seed itself: from the same state, or where it would draw none, from
        # another stream.
        later = stream.get_state()
        if draws_seed and later.equal(after):
            stream.set_state(state)
            pool = maker.own(_Drawn(order), loader.generator)
        else:
            pool = maker.own(_Drawn(order), fresh_generator(0))
        return Begun(pool, order, failure)


class _Drawn:
    """A sampler of which this order was drawn already."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def __iter__(self) -> Order:
        return self._order

    def __len__(self) -> int:
        return 0


def _reset(pool: Pool, loader: Any, sampler: Any) -> Pool:
    """The pool begins another epoch, by this sampler."""
    iterator = pool.iterator
    iterator._index_sampler = sampler
    try:
        iterator._reset(loader)
    finally:
        iterator._index_sampler = loader._index_sampler
    pool.shift = pool.given = 0
    return pool


def _stream_of(loader: Any) -> Any:
    import torch

    return loader.generator if loader.generator is not None else torch.default_generator
