"""Data sets and a driver that switches where it is told, for the tests of switching."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from loaderscope.profiler.iterate.watch import hand_out, watch
from loaderscope.tuning.settings import Settings, settings_of
from loaderscope.tuning.switching import Switching, handing_out


class Rows(Dataset):
    """Each sample is what its index says."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([index, index * index]), f"row {index}"


class Drawing(Rows):
    """Draws random numbers wherever it is asked."""

    def __getitem__(self, index: int) -> Any:
        return index, torch.rand(1), np.random.rand(), random.random()


class FailsElsewhere(Rows):
    """Works with the user's own settings alone."""

    def __init__(self, length: int, workers: int) -> None:
        super().__init__(length)
        self.workers = workers

    def __getitem__(self, index: int) -> Any:
        info = torch.utils.data.get_worker_info()
        if (info.num_workers if info else 0) != self.workers:
            raise RuntimeError("not in this process")
        return super().__getitem__(index)


class Script:
    """A driver that switches when so many batches of all epochs were handed over."""

    def __init__(self, loader: Any, plan: dict[int, Settings], kept: bool = True) -> None:
        self.plan, self.kept = plan, kept
        self.pools = self.batches = 0
        self.now = settings_of(loader)
        self.events: list[Any] = []
        self.failures: list[BaseException] = []

    def wanted(self, own: Settings) -> Settings:
        return self.now

    def keeps(self, settings: Settings) -> bool:
        return self.kept

    def begun(self, iterator: Switching) -> None:
        self.events.append(("begun", iterator.settings))

    def handed(self, iterator: Switching, batch: Any) -> None:
        self.batches += 1
        if self.batches in self.plan:
            self.now = self.plan[self.batches]
        if iterator.settings != self.now:
            iterator.switch(self.now)

    def switched(self, iterator: Switching, settings: Settings) -> None:
        self.events.append((iterator.given, settings))

    def failed(self, settings: Settings, error: BaseException) -> None:
        self.now = self.now if settings != self.now else Settings(0)
        self.failures.append(error)


def scripted(loader: Any, plan: dict[int, Settings], kept: bool = True) -> Script:
    script = Script(loader, plan, kept)
    hand_out(watch(loader), handing_out(script))
    return script


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
