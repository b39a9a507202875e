"""Loops whose cause is known, and healthy ones that look alike: `python causes_programs.py KIND`."""

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope

PATIENCE_S = 90.0
ROWS = 200_000


class Rows(Dataset):
    """Cheap to fetch; what the loop does besides is what costs."""

    def __init__(self) -> None:
        self.order = list(range(ROWS))
        self.rows = np.zeros((ROWS, 8), np.float32)

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.rows[self.order[index]])


class Counted(Rows):
    def __len__(self) -> int:
        return len([each for each in self.order if each >= 0])


class Trains(Rows):
    """It holds the loop itself, as a trainer that is its own data set does."""

    def train(self) -> None:
        for batch in loader:
            train_step(batch)
            if over():
                break


class Lists(Dataset):
    """Rows of a contiguous HDF5 file, asked for by lists of places."""

    def __init__(self) -> None:
        import h5py

        path = Path(__file__).with_name("rows.h5")
        with h5py.File(path, "w") as file:
            file["x"] = np.random.default_rng(0).random((20_000, 512), np.float32)
        self.file = h5py.File(path, "r")

    def __len__(self) -> int:
        return 300

    def __getitem__(self, index: int) -> Any:
        near = sorted(random.sample(range(index * 60, index * 60 + 60), 24))
        return torch.from_numpy(self.file["x"][near])


class Net(torch.nn.Module):
    """The loop's own computing, in the file of the data sets."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, batch: Any) -> Any:
        for _ in range(100):
            batch = self.layer(batch)
        return batch


net = Net()


def train_step(batch: Any) -> None:
    if batch.shape[-1] == 8:
        net(batch).sum().item()


def over() -> bool:
    runs = Path(os.environ["LOADERSCOPE_DIR"])
    took = time.monotonic() - begun
    return took > PATIENCE_S or bool(list(runs.glob("2*/system-*/stacks-0.json")))


if __name__ == "__main__":
    kind, begun = sys.argv[1], time.monotonic()
    torch.set_num_threads(1)
    dataset: Any = {"counted": Counted, "lists": Lists, "trains": Trains}[kind]()
    loader = loaderscope.watch(DataLoader(dataset, batch_size=8))
    if kind == "trains":
        dataset.train()
    while not over():
        for number, batch in enumerate(loader):
            train_step(batch)
            done = number / len(loader)
            if over():
                break
