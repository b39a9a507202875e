"""Data that take a while to read, and a model that does not: shared by the programs beside."""

import os
import time

import torch
import torch.distributed as dist
from torch.utils.data import Dataset

SAMPLES, BATCH = 48, 4
# The rank that takes longer to read, of a job; none for a process alone.
SLOW_RANK = os.environ.get("SLOW_RANK")


class Rows(Dataset):
    """Row i is the same whoever reads it."""

    def __init__(self, samples: int = SAMPLES) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        if not 0 <= index < self.samples:
            raise IndexError(index)
        time.sleep(0.003)
        if SLOW_RANK is not None and dist.is_initialized() and dist.get_rank() == int(SLOW_RANK):
            time.sleep(0.006)
        return torch.full((4,), float(index) / self.samples)


def told(value: object) -> None:
    """The program's result: must be the same with and without recording."""
    number = value.item() if isinstance(value, torch.Tensor) else value
    print(f"RESULT {number:.6f}" if isinstance(number, float) else f"RESULT {number}", flush=True)
