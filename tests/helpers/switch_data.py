"""Data sets and a driver that switches where it is told, for the tests of switching."""

import random
import time
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace
from torch.utils.data import Dataset

from loaderscope.profiler.base import torch_parts
from loaderscope.profiler.record.iterate.watch import hand_out, watch
from loaderscope.tuning.evidence.settings import Settings, settings_of, why_fixed, why_refused
from loaderscope.tuning.switch.switching import Switching, handing_out


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

    COMPARED = 1
    settled = False

    def __init__(self, loader: Any, plan: dict[int, Settings], kept=True, at_once=True) -> None:
        self.plan, self.kept, self.at_once = plan, kept, at_once
        self.pools = self.batches = 0
        self.compared = self.COMPARED
        self.own = self.now = settings_of(loader)
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
            self.switch(iterator)

    def switch(self, iterator: Switching) -> None:
        """`at_once`: its workers start now, as between many steps, and make what is compared."""
        iterator.switch(self.now)
        pending = iterator._pending
        while self.at_once and pending is not None and pending.pool.workers is not None:
            if not pending.pool.workers.started:
                pending.pool.workers.start(1)
            if pending.pool.started and torch_parts.finished(pending.pool.iterator):
                break
            time.sleep(0.001)

    def switched(self, iterator: Switching, settings: Settings) -> None:
        self.events.append((iterator.given, settings))

    def ended(self, iterator: Switching) -> None: ...

    def failed(self, settings: Settings, error: BaseException) -> None:
        self.now = self.now if settings != self.now else self.own
        self.failures.append(error)


def scripted(loader: Any, plan: dict[int, Settings], kept=True, at_once=True) -> Script:
    script = Script(loader, plan, kept, at_once)
    drive(loader, script)
    return script


def drive(loader: Any, script: Script) -> None:
    hand_out(watch(loader), handing_out(script))


class Restless(Script):
    """Other settings every few batches, whatever the loop; what fails is not tried again."""

    EVERY = 2

    def __init__(self, loader: Any) -> None:
        super().__init__(loader, {})
        own = settings_of(loader)
        others = (Settings(1), Settings(2, 3), Settings(0), Settings(1, 1))
        self.turns = [own, *(each for each in others if why_refused(loader, own, each) is None)]

    def handed(self, iterator: Switching, batch: Any) -> None:
        self.batches += 1
        self.now = self.turns[self.batches // self.EVERY % len(self.turns)]
        self.switch(iterator)

    def failed(self, settings: Settings, error: BaseException) -> None:
        self.turns = [each for each in self.turns if each != settings]
        self.now = self.turns[0]


def restless(loader: Any) -> Any:
    """As `watch`, and where the loader's settings can be changed, they are."""
    watched = watch(loader)
    if why_fixed(watched) is None:
        drive(watched, Restless(watched))
    return watched


def deciding(loader: Any) -> Any:
    """Tuned as tuning decides, in a hurry: looks and trials take a few batches, and workers are
    always tried first."""
    from loaderscope.tuning import candidates, trial, tune, tuner, window

    tuner.LOOK_BATCHES, tuner.LOOK_S = 12, 0.02
    window.WINDOW_S, window.WINDOW_STEPS, trial.MOST_PAIRS = 0.01, 3, 3
    tuner.SHORT_EPOCH_S = 0.0

    def hurried(loader: Any, own: Settings, *_: Any) -> list[candidates.Candidate]:
        more = replace(own.with_workers(3), prefetch_factor=4)
        others = (own.with_workers(2), own.with_workers(0), more)
        return [candidates.Candidate(each, None) for each in others if each != own]

    tuner.candidates_for = hurried
    tuned = tune.tune(loader)
    tune.say_nothing()  # what the program writes is compared with a bare one's
    return tuned


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
