"""Two ranks on this machine, and streams that several workers share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler
from torch.utils.data.distributed import DistributedSampler

from .case import HABITS, Case, Training
from .materials import Batched, as_is, decoded, packed, takes


def ranks() -> tuple[int, int]:
    """This rank and the number of ranks; joins them with gloo the first time."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("gloo", rank=rank, world_size=world)
    return rank, world


def together(milliseconds: float) -> Any:
    """A step that ends when every rank is there, as one with gradients to average does."""
    wait = takes(milliseconds)

    def step(batch: Any) -> None:
        wait(batch)
        if dist.is_initialized():
            dist.barrier()

    return step


def whole_set_each(sharded: bool = False) -> Training:
    rank, world = ranks()
    dataset = Batched(32 * 60)
    if not sharded:
        return Training(
            DataLoader(dataset, batch_size=32, shuffle=True, collate_fn=as_is),
            takes(3),
            size=32,
            epochs=2,
        )
    sampler: Sampler = DistributedSampler(dataset, world, rank)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, collate_fn=as_is)
    return Training(loader, takes(3), size=32, epochs=4, begin_epoch=sampler.set_epoch)  # type: ignore[attr-defined]


def same_order(told: bool = False) -> Training:
    rank, world = ranks()
    dataset = Batched(32 * 60)
    sampler: DistributedSampler = DistributedSampler(dataset, world, rank)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, collate_fn=as_is)
    begin = sampler.set_epoch if told else None
    return Training(loader, takes(3), size=32, epochs=4, begin_epoch=begin)


class Uneven(Dataset):
    """The second half is six times the work."""

    def __init__(self, length: int) -> None:
        self.length = length
        packed(60), packed(360)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        return decoded(360 if index >= self.length // 2 else 60)[:1000]


class Dealt(Sampler):
    """A rank's share: its own half of the set, or every other sample."""

    def __init__(self, length: int, rank: int, world: int, in_turn: bool) -> None:
        part = length // world
        self.indices = list(
            range(rank, length, world) if in_turn else range(rank * part, (rank + 1) * part)
        )

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)


def uneven(in_turn: bool = False) -> Training:
    rank, world = ranks()
    dataset = Uneven(8 * 60 * world)
    sampler = Dealt(len(dataset), rank, world, in_turn)
    return Training(
        DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=1), together(1), size=8
    )


class Stream(IterableDataset):
    """A worker's share of the stream."""

    def __init__(self, length: int = 3200) -> None:
        self.length = length

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        for number in range(first, self.length, step):
            yield torch.full((32,), float(number))


class WholeStream(IterableDataset):
    """As people write it first."""

    def __init__(self, length: int = 3200) -> None:
        self.length = length

    def __iter__(self) -> Iterator[torch.Tensor]:
        for number in range(self.length):
            yield torch.full((32,), float(number))


def stream(shared: bool = False) -> Training:
    dataset = Stream() if shared else WholeStream()
    loader = DataLoader(dataset, batch_size=32, num_workers=2)
    return Training(
        loader, takes(2), size=32 if shared else 16
    )  # every sample comes twice: half of them are useful


SPEED = (
    *HABITS,
    "batched-getitems",
    "num-workers",
    "collate",
    "worker-transfer",
    "sampler",
    "batch-size",
)
CASES = (
    Case(
        "whole-set-each",
        "two ranks, each over the whole set",
        whole_set_each,
        ("distributed-sampler",),
        {"sharded": True},
        SPEED,
        world=2,
        measurable=False,
    ),
    Case(
        "same-order",
        "two ranks, set_epoch forgotten",
        same_order,
        ("distributed-sampler",),
        {"told": True},
        SPEED,
        world=2,
        measurable=False,
    ),
    Case(
        "uneven-ranks",
        "one rank's share is six times the work",
        uneven,
        ("rank-imbalance",),
        {"in_turn": True},
        HABITS,
        world=2,
    ),
    Case(
        "whole-stream-each",
        "two workers, each yields the whole stream",
        stream,
        ("iterable-sharding",),
        {"shared": True},
        HABITS,
        quick=True,
    ),
)
