"""Where the size of a batch decides: pinning that costs more than it saves, batches too small for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from known_cases.case import HABITS, Case, Training

from .stage import SIDE, device, floats, sending, training


def pinned_small(pin_memory: bool = True) -> Training:
    """Pinning 4 kB takes longer than it saves: the crossover lies above such batches."""
    return training(floats(0.004), sending(0.05, non_blocking=True), 0.0, pin_memory=pin_memory)


def tiny(batch_size: int = 2) -> Training:
    """A step of the device takes as long for 2 samples as for 16."""
    module = device()
    data = TensorDataset(torch.rand(960, 256), torch.rand(960))

    def step(batch: Any) -> None:
        batch[0].to("standin", non_blocking=True)
        module.spin(0.05)

    def block(loader: Any) -> Any:
        yield from loader
        module.synchronize()

    return Training(DataLoader(data, batch_size=batch_size), step, size=batch_size, block=block)


CASES = (
    Case("pinned-small", "4 kB batches, page-locked one by one in the loop", pinned_small, ("pin-memory",),
         {"pin_memory": False}, tuple(rule for rule in HABITS if rule != "pin-memory"), quick=True, side=SIDE),
    Case("tiny", "batches of 2 samples", tiny, ("batch-size", "batched-getitems"), {"batch_size": 16}, HABITS,
         side=SIDE),
)  # fmt: skip
