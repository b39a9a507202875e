"""Many loaders, many iterators, many epochs: what a watched program holds stays bounded."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from contextlib import suppress
from typing import Any

import torch
from torch.utils.data import DataLoader, default_collate

from ..catalogue import Watch, program, say
from ..data import KINDS, Rows, digest

MORE_MAPS = 200
MORE_MB = 20
YARD_S = 0.08


def maps() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


def megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def yard() -> float:
    """CPU time of work that is always the same, of the kinds that are judged: small objects, small
    files."""
    began = time.process_time()
    for number in range(400):
        default_collate([(torch.zeros(4), index) for index in range(4)])
        text = json.dumps({f"name {index}": [index] * 4 for index in range(40)})
        with open("yard", "w") as file:
            file.write(text[number:])
        os.replace("yard", "yard.json")
    return time.process_time() - began


class Held:
    """Maps, memory and CPU time from here on, said as whether they stayed within bounds. Beside
    other programs the same work takes more CPU time, caches and cores being shared: bounds of it
    grow as a yard does."""

    def __init__(self) -> None:
        self.yards = [yard(), yard()]
        gc.collect()
        self.maps, self.mb, self.cpu = maps(), megabytes(), time.process_time()

    def judge(self, cpu_s: float, more_maps: int = MORE_MAPS, more_mb: float = MORE_MB) -> None:
        """`cpu_s` is where a yard takes YARD_S."""
        held = {
            "maps": maps() - self.maps,
            "MB": megabytes() - self.mb,
            "CPU s": time.process_time() - self.cpu,
        }
        slowed = max(1.0, max(*self.yards, yard(), yard()) / YARD_S)
        limits = {"maps": more_maps, "MB": more_mb, "CPU s": cpu_s * slowed}
        say(
            "beyond bounds",
            {name: round(value) for name, value in held.items() if value > limits[name]},
        )


@program("many/iterators-alive", watched=("watch", "all-pure"), alone=True, limit_s=400)
def five_thousand_iterators(watch: Watch) -> None:
    """All at work at once. Bare, an iterator takes some 7 kB."""
    loader = watch(DataLoader(Rows(8), batch_size=4))
    next(iter(loader))
    held = Held()
    alive: list[Any] = [iter(loader) for _ in range(5000)]
    found = [digest(next(iterator)) for iterator in alive]
    say("batches", digest(found))
    held.judge(cpu_s=20, more_mb=150)


@program("many/different-loaders", watched=("watch", "all-pure"), alone=True, limit_s=400)
def fifteen_hundred_loaders(watch: Watch) -> None:
    """Each of another configuration, all kept. The first hundred may take what they need."""
    kept: list[Any] = []

    def add(count: int) -> None:
        for _ in range(count):
            size = len(kept) + 1
            kept.append(watch(DataLoader(Rows(4), batch_size=size, drop_last=bool(size % 2))))
            for batch in kept[-1]:
                torch.is_tensor(batch)

    add(100)
    held = Held()
    add(1400)
    held.judge(cpu_s=3)


@program("many/equal-loaders", alone=True, limit_s=400)
def the_same_loader_again_and_again(watch: Watch) -> None:
    """A loader built anew for each of 1,000 epochs, as some loops do."""
    for batch in watch(DataLoader(Rows(4), batch_size=4)):
        torch.is_tensor(batch)
    held = Held()
    for _ in range(1000):
        for batch in watch(DataLoader(Rows(4), batch_size=4)):
            torch.is_tensor(batch)
    held.judge(cpu_s=6)


@program("many/short-epochs-of-workers", alone=True, limit_s=400)
def many_epochs_of_kept_workers(watch: Watch) -> None:
    loader = watch(DataLoader(Rows(4), batch_size=4, num_workers=1, persistent_workers=True))
    next(iter(loader))
    held = Held()
    for _ in range(1500):
        for batch in loader:
            torch.is_tensor(batch)
    held.judge(cpu_s=10)


@program("many/epochs-of-new-workers", alone=True, limit_s=400)
def many_epochs_that_start_workers(watch: Watch) -> None:
    """What a recorded process holds beyond a bare one is there after the first of them (33 maps:
    six compiled modules of five each, a lane, two of malloc's), and no epoch adds to it."""
    loader = watch(DataLoader(Rows(4), batch_size=4, num_workers=1))

    def run(epochs: int) -> None:
        for _ in range(epochs):
            for batch in loader:
                torch.is_tensor(batch)

    run(10)
    held = Held()
    run(60)
    held.judge(cpu_s=60, more_maps=10)


class Fails(Rows):
    def __getitem__(self, index: int) -> Any:
        if index == 200:
            raise ValueError("a bad sample")
        return super().__getitem__(index)


@program("many/batches", watched=("watch", "all-pure"), alone=True, limit_s=400)
def three_thousand_batches_of_each_kind(watch: Watch) -> None:
    """Whole epochs, epochs that are left and those that fail leave no object behind with a batch."""

    def through(loader: Any, epochs: int) -> None:
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
        through(loader, 10)
        gc.collect()
        before = sys.getallocatedblocks()
        through(loader, 40)
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
