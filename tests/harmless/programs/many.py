"""Many loaders, many iterators, many epochs: what a watched program holds stays bounded."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, default_collate

from ..catalogue import Watch, program, say
from ..data import KINDS, Rows, digest

YARD_S = 0.08


def held() -> dict[str, float]:
    """Maps, memory and CPU time of this process."""
    maps, pages = (Path(f"/proc/self/{name}").read_text() for name in ("maps", "statm"))
    mb = int(pages.split()[1]) * resource.getpagesize() / 1e6
    return {"maps": maps.count("\n"), "MB": mb, "CPU s": time.process_time()}


def yard() -> float:
    """CPU time of work of the kinds that are judged, always the same: small objects and files."""
    began = time.process_time()
    for number in range(400):
        default_collate([(torch.zeros(4), index) for index in range(4)])
        text = json.dumps({f"name {index}": [index] * 4 for index in range(40)})
        with open("yard", "w") as file:
            file.write(text[number:])
        os.replace("yard", "yard.json")
    return time.process_time() - began


class Held:
    """Whether what is held from here on stays within bounds. Beside other programs the same work takes
    more CPU time: bounds of it grow as a yard does."""

    def __init__(self) -> None:
        self.yards = [yard(), yard()]
        gc.collect()
        self.before = held()

    def judge(self, cpu_s: float, more_maps: int = 200, more_mb: float = 20) -> None:
        """`cpu_s` is where a yard takes YARD_S."""
        more = {name: value - self.before[name] for name, value in held().items()}
        slowed = max(1.0, max(*self.yards, yard(), yard()) / YARD_S)
        limits = {"maps": more_maps, "MB": more_mb, "CPU s": cpu_s * slowed}
        beyond = {name: round(value) for name, value in more.items() if value > limits[name]}
        say("beyond bounds", beyond)


def through(loader: Any) -> None:
    for batch in loader:
        torch.is_tensor(batch)


@program("many/iterators-alive", watched=("watch", "all-pure"), alone=True, limit_s=400)
def five_thousand_iterators(watch: Watch) -> None:
    """All at work at once. Bare, an iterator takes some 7 kB."""
    loader = watch(DataLoader(Rows(8), batch_size=4))
    next(iter(loader))
    since = Held()
    alive: list[Any] = [iter(loader) for _ in range(5000)]
    found = [digest(next(iterator)) for iterator in alive]
    say("batches", digest(found))
    since.judge(cpu_s=20, more_mb=150)


@program("many/different-loaders", watched=("watch", "all-pure"), alone=True, limit_s=400)
def fifteen_hundred_loaders(watch: Watch) -> None:
    """Each of another configuration, all kept. The first hundred may take what they need."""
    kept: list[Any] = []

    def add(count: int) -> None:
        for _ in range(count):
            size = len(kept) + 1
            kept.append(watch(DataLoader(Rows(4), batch_size=size, drop_last=bool(size % 2))))
            through(kept[-1])

    add(100)
    since = Held()
    add(1400)
    since.judge(cpu_s=3)


def declare(name: str, first: int, more: int, bounds: Any, anew: bool = False, **how: Any) -> None:
    def run(watch: Watch) -> None:
        def made() -> Any:
            return watch(DataLoader(Rows(4), batch_size=4, **how))

        loader = made()
        for _ in range(first):
            through(loader)
        since = Held()
        for _ in range(more):
            through(made() if anew else loader)
        since.judge(**bounds)

    program(f"many/{name}", alone=True, limit_s=400)(run)


KEPT = {"num_workers": 1, "persistent_workers": True}
declare("equal-loaders", 1, 1000, {"cpu_s": 6}, anew=True)  # one for each epoch, as some loops do
declare("short-epochs-of-workers", 1, 1500, {"cpu_s": 10}, **KEPT)
# What a recorded process holds beyond a bare one is there after the first ten (33 maps: six compiled
# modules of five each, a lane, two of malloc's), and no epoch adds to it.
declare("epochs-of-new-workers", 10, 60, {"cpu_s": 60, "more_maps": 10}, num_workers=1)


class Fails(Rows):
    def __getitem__(self, index: int) -> Any:
        if index == 200:
            raise ValueError("a bad sample")
        return super().__getitem__(index)


@program("many/batches", watched=("watch", "all-pure"), alone=True, limit_s=400)
def three_thousand_batches_of_each_kind(watch: Watch) -> None:
    """Whole epochs, epochs that are left and those that fail leave no object behind with a batch."""

    def epochs_of(loader: Any, epochs: int) -> None:
        for epoch in range(epochs):
            with suppress(ValueError):
                for count, _ in enumerate(loader):
                    if epoch % 2 and count == 50:
                        break

    loaders = {name: KINDS[name](Rows(400)) for name in ("map", "whole", "stream", "single", "own")}
    loaders["failing"] = KINDS["whole"](Fails(400))
    loaders["workers"] = KINDS["persistent"](Rows(400), num_workers=1)
    for name, bare in loaders.items():
        loader = watch(bare)
        epochs_of(loader, 10)
        gc.collect()
        before = sys.getallocatedblocks()
        epochs_of(loader, 40)
        gc.collect()
        say(f"objects left by {name}", sys.getallocatedblocks() - before > 1500)


@program("many/collections", alone=True, limit_s=400)
def collects_garbage_at_every_batch(watch: Watch) -> None:
    """What we keep is looked at by each collection; half as much again is the most it may take."""
    loader = watch(DataLoader(Rows(400), batch_size=4))
    gc.collect()
    began = time.process_time()
    for _ in range(20):
        gc.collect()
    one = (time.process_time() - began) / 20
    began = time.process_time()
    for _ in loader:
        gc.collect()
    say("over three times as long", (time.process_time() - began) / 100 > 3 * one + 0.01)
