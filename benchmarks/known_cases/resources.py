"""What a machine runs out of: threads that fight for cores, memory, descriptors; and a table read
row by row."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from .case import HABITS, Case, Training
from .materials import Batched, as_is, takes, whole_batches


class Products(Dataset):
    """Samples that need a little linear algebra, for which torch may use several threads."""

    def __init__(self) -> None:
        self.matrix = torch.randn(320, 320)

    def __len__(self) -> int:
        return 80 * 4

    def __getitem__(self, index: int) -> torch.Tensor:
        product = self.matrix * torch.rand(1)  # so that nothing could be kept
        for _ in range(6):
            product = product @ self.matrix
        return product[0]


def eight_threads(worker: int) -> None:
    torch.set_num_threads(8)


def threads(worker_init_fn: Any = eight_threads) -> Training:
    loader = DataLoader(Products(), batch_size=4, num_workers=2, worker_init_fn=worker_init_fn)
    return Training(loader, takes(1), size=4)


class Frame(Dataset):
    """A pandas table read row by row."""

    def __init__(self) -> None:
        import numpy as np
        import pandas as pd

        values = np.random.default_rng(0).normal(size=(6400, 12))
        self.frame = pd.DataFrame(values, columns=[f"feature{n}" for n in range(12)])
        self.frame["label"] = np.arange(6400) % 10

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.frame.iloc[index]
        return torch.tensor(row.iloc[:12].to_numpy(dtype="float32")), int(row["label"])


class Columns(Dataset):
    """The same, its columns made tensors once."""

    def __init__(self) -> None:
        frame = Frame().frame
        self.features = torch.from_numpy(frame.iloc[:, :12].to_numpy(dtype="float32"))
        self.labels = torch.from_numpy(frame["label"].to_numpy())

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.features[index], self.labels[index]


def table(columns: bool = False) -> Training:
    if columns:
        return Training(whole_batches(Columns(), 32), size=32)
    return Training(DataLoader(Frame(), batch_size=32, shuffle=True), size=32)


class Hoarding(Dataset):
    """Keeps every sample it ever made, in every worker."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.kept: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return 4 * 6_000

    def __getitem__(self, index: int) -> torch.Tensor:
        sample = torch.ones(6_000)
        if self.keep:
            self.kept[index] = sample
        return sample[:64]


def hoarding(keep: bool = True) -> Training:
    return Training(DataLoader(Hoarding(keep), batch_size=4, num_workers=2), takes(6), size=4)


def kept_batches(keep: bool = True) -> Training:
    """Batches of workers are kept, and with each of their tensors a descriptor."""
    import resource

    resource.setrlimit(
        resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    kept: deque[Any] = deque(maxlen=440 if keep else 1)
    wait = takes(6)

    def step(batch: Any) -> None:
        kept.append(batch)
        wait(batch)

    loader = DataLoader(Batched(32 * 1200), batch_size=32, num_workers=2, collate_fn=as_is)
    return Training(loader, step, size=32)


CASES = (
    Case(
        "threads",
        "eight library threads in each of two workers",
        threads,
        ("thread-oversubscription",),
        {"worker_init_fn": None},
        (*HABITS, "batched-getitems"),
        record_s=4.0,
    ),
    Case(
        "table-rows",
        "pandas .iloc, a row a sample",
        table,
        ("hot-function", "batched-getitems"),
        {"columns": True},
        HABITS,
        needs=("pandas",),
    ),
    Case(
        "hoarding",
        "workers that keep every sample",
        hoarding,
        ("worker-memory",),
        {"keep": False},
        HABITS,
        record_s=45.0,  # what grows for less may be an allocator that warms up
        least_blocks=1,
        measurable=False,
    ),
    Case(
        "kept-batches",
        "descriptors of kept batches near the limit of 1,024",
        kept_batches,
        ("shared-memory",),
        {"keep": False},
        ("storage-format", "pin-memory"),
        record_s=8.0,
        measurable=False,
    ),
)
