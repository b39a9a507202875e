"""Loops whose speed under other settings is predicted: each limited by something else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler

from overhead_workloads import PICTURES, pictures

SAMPLES = 40_000_000  # more than any run takes: epochs that do not end
SHORT_EPOCH = 24  # batches
Change = dict[str, Any]


class Made(Dataset[Any]):
    """Samples made by a function of their number; as long as wanted."""

    def __init__(self, sample: Callable[[int], Any], length: int = SAMPLES) -> None:
        self.sample = sample
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)


class MadeBatched(Made):
    """The same, a batch at a time."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return list(ROWS[torch.tensor(indices) % len(ROWS)])


class Stream(IterableDataset[Any]):
    """Samples without numbers; every worker has its own."""

    def __iter__(self) -> Iterator[Any]:
        rng = np.random.default_rng(0)
        while True:
            yield decoded(int(rng.integers(1 << 30)))


class SlowSampler(Sampler[int]):
    """Draws each number as a weighted sampler without replacement would: by computing."""

    def __iter__(self) -> Iterator[int]:
        weights = np.ones(20_000)
        for number in range(SAMPLES):
            yield int(weights.cumsum()[number % 20_000])

    def __len__(self) -> int:
        return SAMPLES


ROWS = torch.randn(4096, 64)
NOISE = np.random.default_rng(0).random((128, 128))


def decoded(index: int) -> np.ndarray[Any, Any]:
    """1 ms or so of NumPy on one core."""
    values = NOISE + index % 7
    for _ in range(12):
        values = np.sqrt(np.abs(np.sin(values)))
    return values[:32, :32].astype(np.float32)


def waited(index: int) -> torch.Tensor:
    """A remote store: 2 ms of waiting, hardly any CPU."""
    time.sleep(0.002)
    return ROWS[index % len(ROWS)]


def sometimes_slow(index: int) -> torch.Tensor:
    """1 ms, and one sample in forty takes 60 ms."""
    time.sleep(0.060 if index * 2654435761 % 40 == 0 else 0.001)
    return ROWS[index % len(ROWS)]


def row(index: int) -> torch.Tensor:
    return ROWS[index % len(ROWS)]


def png(index: int) -> np.ndarray[Any, Any]:
    from PIL import Image

    with Image.open(FILES[index % PICTURES]) as picture:
        return np.array(picture)


def large(index: int) -> torch.Tensor:
    """1 MB."""
    return torch.full((512, 512), float(index))


def fields(index: int) -> dict[str, torch.Tensor]:
    """Forty small tensors."""
    return {f"field{k}": ROWS[(index + k) % len(ROWS), :8] for k in range(40)}


def arrays(index: int) -> dict[str, Any]:
    return {"image": NOISE[:64, :64] + index, "label": index, "name": f"sample {index}"}


def as_arrays(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """A batch that is no tensor: it crosses the pipe as bytes."""
    return {
        key: np.stack([s[key] for s in samples]) if key == "image" else [s[key] for s in samples]
        for key in samples[0]
    }


def slow_collate(samples: list[torch.Tensor]) -> torch.Tensor:
    """By way of Python numbers."""
    return torch.tensor([[float(value) for value in sample] for sample in samples])


def on_device() -> None:
    """4 ms in which main is not busy, as when a device computes."""
    time.sleep(0.004)


WEIGHTS = torch.randn(256, 256)


def multiplied() -> None:
    """Some milliseconds of matrix products on one core."""
    values = WEIGHTS
    for _ in range(8):
        values = torch.tanh(values @ WEIGHTS)


FILES: list[str] = []


def prepare() -> None:
    """Makes the files, once."""
    FILES[:] = sorted(str(path) for path in pictures().glob("*.png"))


@dataclass(frozen=True)
class Workload:
    """`sample` and `loader` make the DataLoader; `base` is recorded, each of `changes` predicted
    and measured."""

    title: str
    sample: Callable[[int], Any] | None
    changes: tuple[Change, ...]
    base: Change = field(default_factory=dict)
    loader: Change = field(default_factory=dict)
    step: Callable[[], None] | None = None
    length: int = SAMPLES
    dataset: Callable[..., Any] = Made

    def make(self, change: Change) -> DataLoader[Any]:
        given = {**self.loader, **self.base, **change}
        if not given.get("num_workers"):
            for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context"):
                given.pop(name, None)
        data = self.dataset() if self.sample is None else self.dataset(self.sample, self.length)
        if "sampler" in given:
            given["sampler"] = given["sampler"]()
        return DataLoader(data, **given)


KEPT = {"persistent_workers": True}
WORKERS: tuple[Change, ...] = tuple({"num_workers": n, **KEPT} for n in (1, 2, 3, 4))
FROM_TWO: tuple[Change, ...] = (
    {"num_workers": 0},
    {"num_workers": 1},
    {"num_workers": 4},
    {"prefetch_factor": 6},
)
TWO: Change = {"num_workers": 2, **KEPT}

WORKLOADS = {
    "cpu": Workload("NumPy, CPU-bound", decoded, WORKERS, loader={"batch_size": 8}),
    "cpu-two": Workload(
        "NumPy, CPU-bound, from two workers", decoded, FROM_TWO, TWO, {"batch_size": 8}
    ),
    "png": Workload(
        "PNG files, CPU compute", png, WORKERS, loader={"batch_size": 8}, step=multiplied
    ),
    "latency": Workload(
        "waiting for a store, device compute",
        waited,
        WORKERS,
        loader={"batch_size": 8},
        step=on_device,
    ),
    "latency-two": Workload(
        "waiting for a store, from two workers", waited, FROM_TWO, TWO, {"batch_size": 8}, on_device
    ),
    "heavy-tail": Workload(
        "one sample in forty is slow",
        sometimes_slow,
        ({"in_order": False}, {"prefetch_factor": 8}, {"num_workers": 6}, {"num_workers": 0}),
        {"num_workers": 3, **KEPT},
        {"batch_size": 4},
        on_device,
    ),
    "tiny": Workload("tiny samples in memory", row, WORKERS, loader={"batch_size": 64}),
    "tiny-two": Workload("tiny samples, from two workers", row, FROM_TWO, TWO, {"batch_size": 64}),
    "batched": Workload(
        "whole batches from memory", row, WORKERS, loader={"batch_size": 256}, dataset=MadeBatched
    ),
    "large": Workload("batches of 8 MB", large, WORKERS, loader={"batch_size": 8}, step=on_device),
    "fields": Workload("40 small tensors a batch", fields, WORKERS, loader={"batch_size": 16}),
    "arrays": Workload(
        "NumPy arrays in a dict",
        arrays,
        WORKERS,
        loader={"batch_size": 16, "collate_fn": as_arrays},
    ),
    "collate": Workload(
        "slow collate, CPU compute",
        row,
        FROM_TWO,
        TWO,
        {"batch_size": 64, "collate_fn": slow_collate},
        multiplied,
    ),
    "compute": Workload(
        "compute-bound on the CPU", row, WORKERS, loader={"batch_size": 16}, step=multiplied
    ),
    "sampler": Workload(
        "slow sampler", decoded, WORKERS, loader={"batch_size": 8, "sampler": SlowSampler}
    ),
    "epochs": Workload(
        "short epochs, workers started anew",
        waited,
        ({"persistent_workers": True}, {"num_workers": 4}, {"num_workers": 1}, {"num_workers": 0}),
        {"num_workers": 2},
        {"batch_size": 4},
        on_device,
        length=4 * SHORT_EPOCH,
    ),
    "stream": Workload(
        "iterable data set", None, WORKERS, loader={"batch_size": 8}, dataset=Stream
    ),
}
