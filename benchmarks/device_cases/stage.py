"""What all cases on the stand-in share: the device, a data set that costs what it is told to, and
the step."""

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

# Slow enough for what Python takes to issue work to be small beside it.
SPEC = standin_device.Spec(
    link_gb_s=2.0,
    pageable_gb_s=0.8,
    copy_us=20.0,
    kernel_us=20.0,
    pin_us=50.0,
    pin_gb_s=8.0,
    lock_us=1000.0,
    lend=True,
)
BATCHES = 60

clock: standin_device.OwnTime | None = None  # None: the machine's
_switched_on: Any = None


def device(spec: standin_device.Spec = SPEC) -> Any:
    """`torch.standin`, switched on once a process and already in use."""
    global _switched_on
    if _switched_on is None:
        _switched_on = standin_device.switch_on(spec, clock)
        _switched_on.init()
    return _switched_on


def load(milliseconds: float) -> None:
    """Making a batch takes so long: computing, in the process's own time; else waiting, which takes
    nobody's core."""
    if clock is not None:
        clock.compute(milliseconds)
    elif milliseconds:
        time.sleep(milliseconds / 1e3)


class Batches(Dataset[Any]):
    """Whole batches, each made in `load_ms`."""

    def __init__(self, make: Callable[[int], Any], load_ms: float, count: int = BATCHES) -> None:
        self.made = [make(k) for k in range(4)]
        self.load_ms = load_ms
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        load(self.load_ms)
        return self.made[index % len(self.made)]


def floats(megabytes: float) -> Callable[[int], torch.Tensor]:
    return lambda k: torch.rand(16, round(megabytes * 1e6 / 64))


def until_done(loader: Any) -> Any:
    """A block of batches, which ends when the device has done all of it."""
    yield from loader
    device().synchronize()


def training(
    make: Callable[[int], Any],
    step: Callable[[Any], None],
    load_ms: float,
    size: float = 16,
    count: int = BATCHES,
    **options: Any,
) -> Training:
    """A loop over such batches."""
    device()
    loader = DataLoader(Batches(make, load_ms, count), batch_size=None, **options)
    return Training(loader, step, size=size, block=until_done)


def sending(spin_ms: float, non_blocking: bool) -> Callable[[Any], None]:
    """A step that copies the batch and computes for so long."""
    module = device()

    def step(batch: torch.Tensor) -> None:
        batch.to("standin", non_blocking=non_blocking)
        module.spin(spin_ms)

    return step
