"""How often what a loop may change is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    Sampler,
    SequentialSampler,
    TensorDataset,
)

from loaderscope.tuning.evidence.evidence import Evidence
from loaderscope.tuning.evidence.settings import settings_of

BATCHES, STEP_NS, LOOK_NS = 4000, 1_000_000, 5_000


class Clock:
    """Each reading takes a part of a look."""

    now = 0

    def __call__(self) -> int:
        self.now += LOOK_NS // 2
        return self.now


class OwnSampler(Sampler[int]):
    def __init__(self, data: TensorDataset) -> None:
        self.data = data

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data)))


@pytest.mark.parametrize(
    ("own", "other", "sampler", "most"),
    [
        (0, 2, SequentialSampler, 1.0),  # the loop may change the next batch
        (2, 0, SequentialSampler, 1.0),
        (2, 3, OwnSampler, 0.15),  # whose indices are drawn on time
        (2, 3, SequentialSampler, 0.15),  # no batch before the next epoch
    ],
)
def test_what_no_batch_of_the_epoch_depends_on_is_looked_at_seldom(own, other, sampler, most):
    data = TensorDataset(torch.arange(64))
    loader = DataLoader(data, 4, sampler=sampler(data), num_workers=own)
    clock = Clock()
    evidence = Evidence(loader, clock=clock)
    evidence.epoch_begins(loader, settings_of(loader))
    iterator = SimpleNamespace(_num_workers=other, _dataset_fetcher=None)
    looked = 0
    for _ in range(BATCHES):
        clock.now += STEP_NS
        evidence.asked(False, iterator)
        looked += evidence._looking
    assert BATCHES * most * 0.5 < looked <= BATCHES * most


@pytest.mark.parametrize(
    ("sampler", "first", "then"),
    [
        (SequentialSampler, True, True),
        (RandomSampler, True, True),
        (partial(RandomSampler, generator=torch.Generator()), False, True),
        (partial(RandomSampler, generator=torch.Generator(), num_samples=99), False, False),
        (partial(RandomSampler, generator=torch.Generator(), replacement=True), False, False),
        (OwnSampler, False, False),
    ],
)
def test_indices_are_drawn_early_where_nothing_notices(sampler, first, then):
    """The end of an epoch moves a generator that the program has."""
    data = TensorDataset(torch.arange(64))
    evidence = Evidence(DataLoader(data, 4, sampler=sampler(data)))
    assert evidence.draws_early(0) == first
    evidence.epoch_ends(16)
    assert evidence.draws_early(14) == then
    assert evidence.draws_early(15) == (then and evidence.draws_early(99)) == first
