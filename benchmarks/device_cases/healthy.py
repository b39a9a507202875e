"""Loops in which the device has what it needs: nothing may be said of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from known_cases.case import ANY, Case, Training

from .stage import SIDE, device, floats, sending, training


def overlapped() -> Training:
    return training(floats(4.0), sending(12.0, non_blocking=True), 3.0, pin_memory=True)


def small_pageable() -> Training:
    """Copies out of ordinary memory, too small to matter."""
    return training(floats(0.1), sending(8.0, non_blocking=False), 1.0)


def synchronous() -> Training:
    """A loss read each step, by a program whose data is there at once."""
    module = device()

    def step(batch: torch.Tensor) -> None:
        there = batch.to("standin", non_blocking=True)
        module.spin(8.0)
        there[0, 0].item()

    return training(floats(0.5), step, 0.0, pin_memory=True)


def prefetched() -> Training:
    """Copied one batch ahead on a side stream, under the kernels of the batch before."""
    module = device()
    made = training(floats(4.0), lambda batch: module.spin(8.0), 1.0, pin_memory=True)
    side = module.Stream()

    def block(loader: Any) -> Iterator[Any]:
        ahead = None
        for batch in loader:
            with module.stream(side):
                copied = batch.to("standin", non_blocking=True)
            if ahead is not None:
                yield ahead
            module.current_stream().wait_stream(side)
            ahead = copied
        yield ahead
        module.synchronize()

    made.block = block
    return made


def workers() -> Training:
    return training(
        floats(2.0), sending(10.0, non_blocking=True), 3.0, pin_memory=True, num_workers=1, persistent_workers=True
    )


def few_tensors() -> Training:
    module = device()

    def step(batch: dict[str, torch.Tensor]) -> None:
        for tensor in batch.values():
            tensor.to("standin", non_blocking=True)
        module.spin(10.0)

    return training(lambda k: {name: torch.rand(16, 1000) for name in "abcd"}, step, 1.0, pin_memory=True)


CASES = (
    Case("overlapped", "page-locked, not waited for, device busy", overlapped, forbidden=(ANY,), quick=True, side=SIDE),
    Case("small-pageable", "100 kB a batch out of ordinary memory", small_pageable, forbidden=(ANY,), side=SIDE),
    Case("synchronous", "a loss read each step", synchronous, forbidden=(ANY,), side=SIDE),
    Case("prefetched", "copied ahead on a side stream", prefetched, forbidden=(ANY,), quick=True, side=SIDE),
    Case("workers", "made by a worker, page-locked by a thread", workers, forbidden=(ANY,), side=SIDE),
    Case("few-tensors", "four tensors a batch", few_tensors, forbidden=(ANY,), side=SIDE),
)  # fmt: skip
