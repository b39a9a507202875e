"""The beginning of an epoch. Torch's random draws happen at the same moments, in the same order and
once, whoever makes the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...profiler.base import torch_parts
from ...profiler.guard.error_origin import is_ours
from ..evidence.settings import Settings
from ..evidence.streams import epoch_seed, fresh_generator
from .order import Order
from .pools import Pool, PoolMaker

# Who makes the batches, in which order, and why the wanted settings could not.
Begun = tuple[Pool, Order, Exception | None]


class _SamplerView:
    """Stands for a loader's sampler: torch asks it for an iterator, and may do so twice an
    epoch."""

    def __init__(self, begin: Callable[[], Order]) -> None:
        self._begin = begin

    def __iter__(self) -> Order:
        return self._begin()


def begin_epoch(
    loader: Any, maker: PoolMaker, settings: Settings, before: Pool | None, draws_seed: bool
) -> Begun:
    """Begin an epoch with these settings, with `before` if its workers stayed, or with the code's
    own settings if that fails. `draws_seed`: whether torch draws one for the epoch. Raises what the
    sampler and the code's own settings raise."""
    if settings != maker.settings or not (draws_seed or before is not None):
        return _by_guest(loader, maker, settings, before, draws_seed)
    orders: list[Order] = []

    def begin() -> Order:
        orders.append(_order(maker, iter(loader._index_sampler)))
        return orders[-1]

    if before is None:
        before = maker.own(_SamplerView(begin), loader.generator)
    else:
        before.begin_epoch(loader, _SamplerView(begin))
    return before, orders[-1], None


def _order(maker: PoolMaker, source: Iterator[Any]) -> Order:
    return Order(source, maker.settings.ahead, maker.evidence)


def _by_guest(
    loader: Any, maker: PoolMaker, settings: Settings, before: Pool | None, draws_seed: bool
) -> Begun:
    """Draw what torch would draw; no other pool draws any of it."""
    import torch

    own = maker.settings
    source = iter(loader._index_sampler)
    stream = loader.generator if loader.generator is not None else torch.default_generator
    state = stream.get_state()
    if draws_seed:
        epoch_seed(loader)
        for _ in range(1, torch_parts.samplers_begun(own.num_workers > 0)):
            source = iter(loader._index_sampler)
        if own.num_workers:
            torch_parts.check_number_of_workers(loader)
    after = stream.get_state()
    order, failure = _order(maker, source), None
    order.catch_up()
    if settings != own:
        try:
            if before is None:
                before = maker.guest(settings, None)
            else:
                before.begin_epoch(loader, order)
            if own.num_workers:
                before.draw_from(order)
            return before, order, None
        except Exception as error:
            if not is_ours(error) or order.raised(error):
                raise
            failure = error
            order.give_back(0)
    # Torch draws the seed itself: from the same state, or where it would draw none, from another
    # stream.
    seeds = fresh_generator(0)
    if draws_seed and stream.get_state().equal(after):
        stream.set_state(state)
        seeds = loader.generator
    return maker.own(order, seeds), order, failure
