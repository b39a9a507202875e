"""Batches too small for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from known_cases.case import HABITS, Training

from .case import OnDevice
from .stage import device, until_done


def tiny(batch_size: int = 2, width: int = 256, spin_ms: float = 0.05) -> Training:
    """A step of the device takes as long for 2 samples as for 16."""
    module = device()
    data = TensorDataset(torch.rand(1920, width), torch.rand(1920))

    def step(batch: Any) -> None:
        batch[0].to("standin", non_blocking=True)
        module.spin(spin_ms)

    return Training(
        DataLoader(data, batch_size=batch_size), step, size=batch_size, block=until_done
    )


def less_tiny(batch_size: int = 4) -> Training:
    return tiny(batch_size, width=64, spin_ms=0.1)


def three(batch_size: int = 3) -> Training:
    return tiny(batch_size, width=128, spin_ms=0.2)


TINY = ("batch-size", "batched-getitems")

CASES = (
    OnDevice("tiny", "batches of 2 samples", tiny, TINY, {"batch_size": 16}, HABITS),
    OnDevice("less-tiny", "batches of 4 samples", less_tiny, TINY, {"batch_size": 32}, HABITS),
    OnDevice(
        "three", "batches of 3 samples", three, TINY, {"batch_size": 24}, HABITS, held_out=True
    ),
)
