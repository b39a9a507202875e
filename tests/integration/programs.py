"""Small trainings to start, interrupt and kill: `python programs.py NAME`."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from loaderscope import watch


class Numbers(Dataset):
    def __init__(self, length: int = 100_000) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index)), index


def endless(workers: int = 0) -> None:
    """Says how many batches it has been given, as it goes."""
    loader = watch(DataLoader(Numbers(), batch_size=4, num_workers=workers))
    print("ready", flush=True)
    count = 0
    while True:
        for _ in loader:
            count += 1
            os.write(1, f"{count}\n".encode())


def endless_workers() -> None:
    endless(2)


def fills_the_disk() -> None:
    """Writes 20,000 batches, 4.5 MB of records."""
    loader = watch(DataLoader(Numbers(20_000), batch_size=1))
    print(sum(int(batch[1].sum()) for batch in loader), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
