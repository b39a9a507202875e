"""What all cases on the stand-in share: the device, a data set that costs what it is told to, and the step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from known_cases.case import Training

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import standin_device

SIDE = "device_side.py"
# Slow enough for what Python takes to issue work to be small beside it.
SPEC = standin_device.Spec(
    link_gb_s=2.0, pageable_gb_s=0.8, copy_us=20.0, kernel_us=20.0, pin_us=50.0, pin_gb_s=8.0, lend=True
)
BATCHES = 60

_switched_on: Any = None


def device(spec: standin_device.Spec = SPEC) -> Any:
    """`torch.standin`, switched on once a process and already in use."""
    global _switched_on
    if _switched_on is None:
        _switched_on = standin_device.switch_on(spec)
        _switched_on.init()
    return _switched_on


class Batches(Dataset[Any]):
    """Whole batches, each made in `load_ms` of sleep: the host's cores do nothing meanwhile."""

    def __init__(self, make: Callable[[int], Any], load_ms: float, count: int = BATCHES) -> None:
        self.made = [make(k) for k in range(4)]
        self.load_ms = load_ms
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if self.load_ms:
            time.sleep(self.load_ms / 1e3)
        return self.made[index % len(self.made)]


def floats(megabytes: float) -> Callable[[int], torch.Tensor]:
    return lambda k: torch.rand(16, round(megabytes * 1e6 / 64))


def training(
    make: Callable[[int], Any], step: Callable[[Any], None], load_ms: float, size: float = 16, **options: Any
) -> Training:
    """A loop over such batches. A block ends when the device has done all of it."""
    module = device()
    loader = DataLoader(Batches(make, load_ms), batch_size=None, **options)

    def block(loader: Any) -> Any:
        yield from loader
        module.synchronize()

    return Training(loader, step, size=size, block=block)


def sending(spin_ms: float, non_blocking: bool) -> Callable[[Any], None]:
    """A step that copies the batch and computes for so long."""
    module = device()

    def step(batch: torch.Tensor) -> None:
        batch.to("standin", non_blocking=non_blocking)
        module.spin(spin_ms)

    return step
