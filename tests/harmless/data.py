"""Data sets that show the random state of whoever makes their samples; digests of batches."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler

from .catalogue import say, still

N = 24


class Rows(Dataset):
    def __init__(self, length: int = N, pause_s: float = 0.0) -> None:
        self.length = length
        self.pause_s = pause_s

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if self.pause_s:
            time.sleep(self.pause_s)
        if still():
            return index, torch.tensor([index, -index]), index / 7, f"row {index}"
        return index, torch.rand(2), np.random.rand(), random.random()


class Whole(Rows):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        assert type(indices) is list
        return [self[index] for index in indices]


class Stream(IterableDataset):
    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, len(self.rows), step):
            yield self.rows[index]


class Own(DataLoader):
    def __iter__(self) -> Any:
        for batch in super().__iter__():
            yield [batch, "mine"]


def _stateful(rows: Any, **more: Any) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(rows, **more)


# A loader of each kind over these rows; `more`: number of workers, start method, collate_fn.
KINDS: dict[str, Callable[..., Any]] = {
    "map": lambda rows, **more: DataLoader(rows, batch_size=4, shuffle=True, **more),
    "whole": lambda rows, **more: DataLoader(_whole(rows), batch_size=4, **more),
    "stream": lambda rows, **more: DataLoader(Stream(rows), batch_size=4, **more),
    "batches": lambda rows, **more: DataLoader(
        rows, batch_sampler=BatchSampler(RandomSampler(range(len(rows))), 5, False), **more
    ),
    "sampler": lambda rows, **more: DataLoader(
        rows,
        batch_size=4,
        sampler=torch.utils.data.SequentialSampler(range(len(rows))),
        drop_last=True,
        **more,
    ),
    "single": lambda rows, **more: DataLoader(rows, batch_size=None, **more),
    "pinned": lambda rows, **more: DataLoader(rows, batch_size=4, pin_memory=True, **more),
    "generator": lambda rows, **more: DataLoader(
        rows, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3), **more
    ),
    "own": lambda rows, **more: Own(rows, batch_size=4, **more),
    "stateful": lambda rows, **more: _stateful(rows, batch_size=4, shuffle=True, **more),
    "statestream": lambda rows, **more: _stateful(Stream(rows), batch_size=4, **more),
    "persistent": lambda rows, **more: DataLoader(
        rows, batch_size=4, shuffle=True, persistent_workers=bool(more.get("num_workers")), **more
    ),
}


def _whole(rows: Rows) -> Rows:
    """The same rows, fetched a whole batch at once."""

    kind = type(rows)
    whole = Whole if kind is Rows else type("WholeRows", (Whole, kind), {"__module__": __name__})
    made = whole.__new__(whole)
    made.__dict__.update(vars(rows))
    return made


def digest(value: Any) -> str:
    """Equal if and only if the value is, bit by bit."""
    found = hashlib.md5()
    _digest(value, found.update)
    return found.hexdigest()[:16]


def _digest(value: Any, add: Callable[[bytes], None]) -> None:
    if isinstance(value, torch.Tensor):
        add(f"{value.dtype}{tuple(value.shape)}{value.is_pinned()}".encode())
        add(value.detach().numpy().tobytes())
    elif isinstance(value, dict):
        add(type(value).__name__.encode())
        for key, inner in value.items():
            add(str(key).encode())
            _digest(inner, add)
    elif isinstance(value, list | tuple):
        add(f"{type(value).__name__}{len(value)}".encode())
        for inner in value:
            _digest(inner, add)
    else:
        add(f"{type(value).__name__}{value!r}".encode())


def eat(loader: Any, most: int | None = None) -> int:
    """Loops over it, or over its first batches, and says what came; returns how many."""
    seen = []
    try:
        for batch in loader:
            seen.append(digest(batch))
            if most is not None and len(seen) == most:
                break
    finally:
        say("batches", seen)
    return len(seen)
