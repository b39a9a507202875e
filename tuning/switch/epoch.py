"""The beginning of an epoch. Torch's random draws happen at the same moments, in the same order and
once, whoever makes the batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...profiler.base import torch_parts
from ...profiler.guard.error_origin import is_ours
from ..evidence.evidence import Evidence
from ..evidence.samplers import generator_of
from ..evidence.settings import Settings, settings_of
from ..evidence.streams import epoch_seed, fresh_generator
from .order import Order
from .pools import Pool, PoolMaker, SamplerView

# Who makes the batches, in which order, and why the wanted settings could not.
Begun = tuple[Pool, Order, Exception | None]


class EpochStart:
    """Begins the epochs of one iterator."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._seed_drawn = False  # which loaders that keep their workers draw once

    def begin(
        self, loader: Any, maker: PoolMaker, settings: Settings, before: Pool | None
    ) -> Begun:
        """Begin an epoch with these settings, with `before` if its workers stayed, or with the
        code's own settings if that fails. Raises what the sampler and the code's own settings
        raise."""
        own = settings_of(loader)
        draws_seed = not (own.persistent_workers and self._seed_drawn)
        self._seed_drawn = True
        if settings != own or not (draws_seed or before is not None):
            return self._by_guest(loader, maker, settings, before, draws_seed)
        orders: list[Order] = []

        def begin() -> Order:
            orders.append(self._order(loader, iter(loader._index_sampler)))
            return orders[-1]

        if before is None:
            before = maker.own(SamplerView(begin), loader.generator)
        else:
            before.begin_epoch(loader, SamplerView(begin))
        return before, orders[-1], None

    def _order(self, loader: Any, source: Iterator[Any]) -> Order:
        generator = generator_of(loader._index_sampler)
        return Order(source, settings_of(loader).ahead, generator, self._evidence)

    def _by_guest(
        self,
        loader: Any,
        maker: PoolMaker,
        settings: Settings,
        before: Pool | None,
        draws_seed: bool,
    ) -> Begun:
        """Draw what torch would draw; no other pool draws any of it."""
        import torch

        own = settings_of(loader)
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
        order = self._order(loader, source)
        order.catch_up()
        sampler, failure = SamplerView(lambda: order), None
        if settings != own:
            try:
                if before is None:
                    before = maker.guest(settings, None)
                else:
                    before.begin_epoch(loader, sampler)
                if own.num_workers:
                    before.draw_from(order)
                return before, order, None
            except Exception as error:
                if not is_ours(error) or order.raised(error):
                    raise
                failure = error
                order.give_back(0)
        # Torch draws the seed itself: from the same state, or where it would draw none, from
        # another stream.
        if draws_seed and stream.get_state().equal(after):
            stream.set_state(state)
            return maker.own(sampler, loader.generator), order, failure
        return maker.own(sampler, fresh_generator(0)), order, failure
