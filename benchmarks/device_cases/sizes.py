"""Where the size of a batch decides: pinning that costs more than it saves, batches too small for
the device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from known_cases.case import HABITS, Training

from .case import OnDevice
from .stage import device, training, until_done


def pinned_small(pin_memory: bool = True, kilobytes: float = 4.0, tensors: int = 6) -> Training:
    """Pinning a few kB takes longer than it saves: the crossover lies above such batches."""
    module = device()

    def step(batch: dict[str, torch.Tensor]) -> None:
        for tensor in batch.values():
            tensor.to("standin", non_blocking=True)
        module.spin(0.05)

    def make(k: int) -> dict[str, torch.Tensor]:
        return {f"field {n}": torch.rand(round(kilobytes * 250)) for n in range(tensors)}

    return training(make, step, 0.0, pin_memory=pin_memory)


def pinned_less_small(pin_memory: bool = True) -> Training:
    return pinned_small(pin_memory, kilobytes=10.0, tensors=4)


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


UNPINNED, OTHERS = {"pin_memory": False}, tuple(rule for rule in HABITS if rule != "pin-memory")
TINY = ("batch-size", "batched-getitems")

CASES = (
    OnDevice(
        "pinned-small",
        "six tensors of 4 kB, page-locked one by one in the loop",
        pinned_small,
        ("pin-memory",),
        UNPINNED,
        OTHERS,
        quick=True,
    ),
    OnDevice(
        "pinned-less-small",
        "four of 10 kB likewise",
        pinned_less_small,
        ("pin-memory",),
        UNPINNED,
        OTHERS,
        held_out=True,
    ),
    OnDevice("tiny", "batches of 2 samples", tiny, TINY, {"batch_size": 16}, HABITS),
    OnDevice("less-tiny", "batches of 4 samples", less_tiny, TINY, {"batch_size": 32}, HABITS),
    OnDevice(
        "three", "batches of 3 samples", three, TINY, {"batch_size": 24}, HABITS, held_out=True
    ),
)
