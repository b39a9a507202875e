"""One sample at a time from data that lies in memory as arrays."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

from .case import HABITS, Case, Training
from .materials import takes, whole_batches

LENGTH, SIZE = 24_000, 100
NEVER = (*HABITS, "hot-function")


class Points(Dataset):
    """Rows of a tensor and their labels."""

    def __init__(self) -> None:
        self.points = torch.randn(LENGTH, 33)
        self.labels = torch.randint(0, 10, (LENGTH,))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index], self.labels[index]


class Named(Dataset):
    """The same as a dict."""

    def __init__(self) -> None:
        self.features = torch.randn(LENGTH, 16)
        self.weights = torch.rand(LENGTH)
        self.labels = torch.randint(0, 10, (LENGTH,))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, idx: Any) -> dict[str, torch.Tensor]:
        return {
            "features": self.features[idx],
            "weight": self.weights[idx],
            "label": self.labels[idx],
        }


class Arrays(Dataset):
    """NumPy arrays, converted a sample at a time."""

    def __init__(self) -> None:
        self.values = np.random.default_rng(0).normal(size=(LENGTH, 24)).astype(np.float32)
        self.targets = np.arange(LENGTH) % 7

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        x = torch.from_numpy(self.values[i])
        y = int(self.targets[i])
        return x, y


class FastArrays(Arrays):
    def __getitem__(self, i: Any) -> Any:
        return torch.from_numpy(self.values[i.numpy()]), torch.from_numpy(self.targets[i.numpy()])


class Rows(Dataset):
    """One tensor, nothing else."""

    def __init__(self) -> None:
        self.rows = torch.randn(LENGTH, 128)

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self.rows[index]


@cache
def mapped_file() -> Path:
    folder = tempfile.mkdtemp(prefix="known-answers-")
    path = Path(folder, "rows.npy")
    np.save(path, np.random.default_rng(0).normal(size=(LENGTH, 64)).astype(np.float32))
    return path


class Mapped(Dataset):
    """A memory-mapped file that the page cache holds."""

    def __init__(self, path: Path) -> None:
        self.rows = np.load(path, mmap_mode="r+")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.rows[index])


class FastMapped(Mapped):
    def __getitem__(self, index: Any) -> torch.Tensor:
        return torch.from_numpy(self.rows[index.numpy()])


def per_sample(dataset: Any, fast: bool, fast_dataset: Any = None, **arguments: Any) -> Training:
    if fast:
        return Training(whole_batches(fast_dataset or dataset, SIZE), size=SIZE)
    return Training(DataLoader(dataset, batch_size=SIZE, shuffle=True, **arguments), size=SIZE)


def points(fast: bool = False, **arguments: Any) -> Training:
    return per_sample(Points(), fast, **arguments)


def points_beside_computing(fast: bool = False) -> Training:
    training = per_sample(Points(), fast)
    training.step = takes(0.6)
    return training


def points_two_workers(fast: bool = False) -> Training:
    return points(fast, num_workers=2)


def points_deep_queue(fast: bool = False) -> Training:
    return points(fast, num_workers=2, prefetch_factor=100)


def named(fast: bool = False) -> Training:
    return per_sample(Named(), fast)


def arrays(fast: bool = False) -> Training:
    return per_sample(Arrays(), fast, FastArrays())


def rows(fast: bool = False) -> Training:
    return per_sample(Rows(), fast)


def mapped(fast: bool = False) -> Training:
    return per_sample(Mapped(mapped_file()), fast, FastMapped(mapped_file()))


class TakenRows(Dataset):
    """What a Subset stands for, indexable by a batch of indices."""

    def __init__(self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor) -> None:
        self.tensors, self.indices = tensors, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, ...]:
        at = self.indices[index]
        return tuple(tensor[at] for tensor in self.tensors)


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(LENGTH, 20), torch.randint(0, 10, (LENGTH,))


def tensor_dataset(fast: bool = False) -> Training:
    return per_sample(TensorDataset(*tensors()), fast)


def subset(fast: bool = False) -> Training:
    both = tensors()
    chosen = torch.randperm(LENGTH)[: LENGTH * 3 // 4]
    return per_sample(Subset(TensorDataset(*both), chosen.tolist()), fast, TakenRows(both, chosen))


def subset_of_points(fast: bool = False) -> Training:
    dataset = Points()
    chosen = torch.randperm(LENGTH)[: LENGTH * 3 // 4]
    taken = TakenRows((dataset.points, dataset.labels), chosen)
    return per_sample(Subset(dataset, chosen.tolist()), fast, taken)


def joined(fast: bool = False) -> Training:
    first, second = tensors(), tensors()
    together = TensorDataset(*(torch.cat(pair) for pair in zip(first, second, strict=True)))
    return per_sample(
        ConcatDataset([TensorDataset(*first), TensorDataset(*second)]), fast, together
    )


def case(name: str, about: str, build: Any, quick: bool = False) -> Case:
    return Case(name, about, build, ("batched-getitems",), {"fast": True}, NEVER, quick=quick)


CASES = (
    case("points", "two tensors, one row at a time, no workers", points, quick=True),
    case("points-beside-computing", "the same with a step of 0.6 ms", points_beside_computing),
    case(
        "points-two-workers",
        "the same with two workers: slower still",
        points_two_workers,
        quick=True,
    ),
    case("points-deep-queue", "the same with prefetch_factor=100 as well", points_deep_queue),
    case("named-fields", "a dict of three tensors", named),
    case("numpy-rows", "NumPy arrays, converted one by one", arrays),
    case("single-tensor", "one tensor, no label", rows),
    case("memory-mapped", "a memory-mapped array in the page cache", mapped),
    case("tensor-dataset", "torch's own TensorDataset", tensor_dataset, quick=True),
    case("subset", "a Subset of a TensorDataset", subset),
    case("subset-of-points", "a Subset of a class of one's own", subset_of_points),
    case("concatenated", "two TensorDatasets joined", joined),
)
