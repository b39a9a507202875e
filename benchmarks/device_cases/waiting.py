"""Programs that wait for the device each step: they load and compute in turn, and never at the same
time."""

from __future__ import annotations

import io
from typing import Any

import torch

from known_cases.case import HABITS, Training

from .case import OnDevice
from .stage import device, floats, training

NOW_AND_THEN = 20


def item(
    every: int = 1, spin_ms: float = 6.0, load_ms: float = 5.0, megabytes: float = 0.5
) -> Training:
    module, steps = device(), [0]

    def step(batch: torch.Tensor) -> None:
        there = batch.to("standin", non_blocking=True)
        module.spin(spin_ms)
        steps[0] += 1
        if steps[0] % every == 0:
            there[0, 0].item()

    return training(floats(megabytes), step, load_ms, pin_memory=True)


def item_short(every: int = 1) -> Training:
    return item(every, spin_ms=2.0, load_ms=4.0, megabytes=0.25)


def printed(every: int = 1) -> Training:
    """A loss that is printed, which reads it."""
    module, steps = device(), [0]

    def step(batch: torch.Tensor) -> None:
        there = batch.to("standin", non_blocking=True)
        module.spin(4.0)
        steps[0] += 1
        if steps[0] % every == 0:
            print(there[0, 0], file=io.StringIO())

    return training(floats(0.5), step, 6.0, pin_memory=True)


def validation(every: int = 1, spin_ms: float = 3.0, load_ms: float = 3.0) -> Training:
    """Right answers, counted on the CPU batch by batch: the device waits for each next batch to be
    loaded."""
    module = device()
    made = training(floats(1.0), lambda batch: None, load_ms, pin_memory=True)

    def block(loader: Any) -> Any:
        right: Any = 0
        with torch.no_grad():
            for batch in loader:
                there = batch.to("standin", non_blocking=True)
                module.spin(spin_ms)
                found = there[0, 0] > 0
                right = right + (int(found.cpu()) if every == 1 else found)
                yield batch
            int(right)
        module.synchronize()

    made.block = block
    return made


def validation_long(every: int = 1) -> Training:
    return validation(every, spin_ms=9.0, load_ms=6.0)


SELDOM = {"every": NOW_AND_THEN}

CASES = (
    OnDevice("item", "a loss read each step", item, ("host-sync",), SELDOM, HABITS, quick=True),
    OnDevice(
        "item-short",
        "the same, with shorter steps",
        item_short,
        ("host-sync",),
        SELDOM,
        HABITS,
        held_out=True,
    ),
    OnDevice("printed", "a loss printed each step", printed, ("host-sync",), SELDOM, HABITS),
    OnDevice(
        "validation", "right answers counted on the CPU", validation, ("host-sync",), SELDOM, HABITS
    ),
    OnDevice(
        "validation-long",
        "the same, with longer steps",
        validation_long,
        ("host-sync",),
        SELDOM,
        HABITS,
        held_out=True,
    ),
)
