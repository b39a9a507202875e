"""Loops that change how their sampler makes batches. Of torch's sampler, this is seen in the source
of a program, so these programs have a file of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SubsetRandomSampler

from ..catalogue import Watch
from .talkback import BATCH, LENGTH, Samples, both, going


@both
def batch_size(watch: Watch, workers: int) -> None:
    sampler = BatchSampler(RandomSampler(range(LENGTH)), BATCH, False)

    def larger(step: int, batch: Any) -> None:
        sampler.batch_size += step == 50

    going(watch(DataLoader(Samples(), batch_sampler=sampler, num_workers=workers)), larger)


@both
def subset_again(watch: Watch, workers: int) -> None:
    """Pseudo-labels: what was chosen is chosen anew in the middle of an epoch."""
    sampler = SubsetRandomSampler(range(LENGTH // 2))

    def choose(step: int, batch: Any) -> None:
        if step % 25 == 0:
            sampler.indices = torch.arange(LENGTH // 2) + step

    going(watch(DataLoader(Samples(), BATCH, sampler=sampler, num_workers=workers)), choose)
