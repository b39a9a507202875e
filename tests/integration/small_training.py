"""A short training on files, with workers and without: `python small_training.py FOLDER`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils.collate import default_collate

import loaderscope
from fetch_probe_data import Compose, Halve, make_pngs


class Flat:
    def __call__(self, value: Image.Image) -> torch.Tensor:
        return torch.tensor(list(value.tobytes()), dtype=torch.float32)


class Pictures(Dataset):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.transform = Compose([Flat(), Halve()])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self.paths[index]) as picture:
            return self.transform(picture)


def train(folder: Path, seconds: float) -> None:
    dataset = Pictures(make_pngs(folder))
    for workers in (2, 0):
        how = {"num_workers": workers, "shuffle": True, "collate_fn": default_collate}
        loader = loaderscope.watch(DataLoader(dataset, batch_size=8, **how))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in loader:
                time.sleep(0.01)


if __name__ == "__main__":
    train(Path(sys.argv[1]), 3.0)
