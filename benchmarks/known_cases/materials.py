"""What the cases are made of: work for the CPU, waiting, data sets and samplers."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


@cache
def packed(kilobytes: int) -> bytes:
    """Compressed bytes of which decoding takes about 4 µs a kilobyte, always the same."""
    rng = np.random.default_rng(kilobytes)
    return zlib.compress(rng.integers(0, 48, kilobytes * 1000, dtype=np.uint8).tobytes(), 1)


def decoded(kilobytes: int) -> torch.Tensor:
    """CPU work of a fixed amount, as image decoders do it: uint8, `kilobytes` thousand of them."""
    return torch.frombuffer(bytearray(zlib.decompress(packed(kilobytes))), dtype=torch.uint8)


def takes(milliseconds: float) -> Callable[[Any], None]:
    """A step that computes on a device: this process only waits for it."""
    return lambda batch: time.sleep(milliseconds / 1e3)


def matmuls(times: int, size: int = 384) -> Callable[[Any], None]:
    """A step that computes on this CPU."""
    matrix = torch.full((size, size), 1e-3)

    def step(batch: Any) -> None:
        for _ in range(times):
            torch.mm(matrix, matrix)

    return step


class Decoding(Dataset):
    """Every sample is decoded: the CPU is the limit."""

    def __init__(self, length: int, kilobytes: int) -> None:
        self.length, self.kilobytes = length, kilobytes

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return decoded(self.kilobytes)[:3072], index % 10


class Remote(Dataset):
    """Every sample is waited for, as from a store across the network: latency is the limit."""

    def __init__(
        self, length: int, milliseconds: float, slow_every: int = 0, slow_ms: float = 0.0
    ) -> None:
        self.length, self.milliseconds = length, milliseconds
        self.slow_every, self.slow_ms = slow_every, slow_ms

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        slow = self.slow_every and index % self.slow_every == self.slow_every - 1
        time.sleep((self.slow_ms if slow else self.milliseconds) / 1e3)
        return torch.zeros(64), index % 10


class Batched(Dataset):
    """In memory, and fetched as a whole batch already: a few microseconds a batch."""

    def __init__(self, length: int, width: int = 32) -> None:
        self.x = torch.randn(length, width)
        self.y = torch.arange(length) % 10

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index], self.y[index]

    def __getitems__(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        return self[torch.as_tensor(indices)]


class BatchIndices(Sampler):
    """Whole batches of shuffled indices."""

    def __init__(self, length: int, size: int) -> None:
        self.length, self.size = length, size

    def __len__(self) -> int:
        return (self.length + self.size - 1) // self.size

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.randperm(self.length).split(self.size))


def as_is(batch: Any) -> Any:
    """A collate function for batches that are batches already."""
    return batch


def whole_batches(dataset: Any, size: int) -> DataLoader:
    """A DataLoader that indexes the data set once a batch."""
    return DataLoader(
        dataset, batch_size=None, sampler=BatchIndices(len(dataset), size), collate_fn=as_is
    )
