"""Loops in which the device has what it needs: nothing may be said of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from known_cases.case import ANY, Training

from .case import OnDevice
from .copying import in_the_way, pageable_workers
from .stage import device, floats, sending, training
from .waiting import NOW_AND_THEN, item

DEVICE_BOUND = "compute-bound"


def overlapped(spin_ms: float = 60.0, megabytes: float = 4.0) -> Training:
    return training(floats(megabytes), sending(spin_ms, non_blocking=True), 3.0, pin_memory=True)


def small_pageable(megabytes: float = 0.1) -> Training:
    """Copies out of ordinary memory, too small to matter."""
    return training(floats(megabytes), sending(8.0, non_blocking=False), 1.0)


def few_tensors() -> Training:
    module = device()

    def step(batch: dict[str, torch.Tensor]) -> None:
        for tensor in batch.values():
            tensor.to("standin", non_blocking=True)
        module.spin(10.0)

    return training(
        lambda k: {name: torch.rand(16, 1000) for name in "abcd"}, step, 1.0, pin_memory=True
    )


def workers() -> Training:
    return training(
        floats(0.5),
        sending(10.0, non_blocking=True),
        3.0,
        pin_memory=True,
        num_workers=1,
        persistent_workers=True,
    )


def far_ahead(
    batches: int = 600, spin_ms: float = 1.0, load_ms: float = 0.3, every: int = 0
) -> Training:
    """The program waits for nothing until the device's queue is full, or the epoch ends: it spends
    its time in next(), of which the device knows nothing. `every`: or until a loss is read, every
    so many steps."""
    module, steps = device(), [0]
    sent = sending(spin_ms, non_blocking=True)

    def step(batch: torch.Tensor) -> None:
        sent(batch)
        steps[0] += 1
        if every and steps[0] % every == 0:
            module.synchronize()

    return training(floats(0.05), step, load_ms, pin_memory=True, count=batches)


def healthy(name: str, about: str, build: object, **more: Any) -> OnDevice:
    return OnDevice(name, about, build, forbidden=(ANY,), **more)  # type: ignore[arg-type]


CASES = (
    healthy("overlapped", "page-locked, not waited for, device busy", overlapped, quick=True),
    healthy("overlapped-long", "the same, longer", partial(overlapped, 100.0, 8.0), held_out=True),
    healthy("small-pageable", "100 kB a batch out of ordinary memory", small_pageable),
    healthy("smaller-pageable", "20 kB a batch", partial(small_pageable, 0.02), held_out=True),
    healthy(
        "synchronous",
        "a loss read each step, of batches that are there at once",
        partial(item, 1, 8.0, 0.0),
    ),
    healthy(
        "logged", "a loss read now and then", partial(item, NOW_AND_THEN, 8.0, 3.0), quick=True
    ),
    healthy(
        "prefetched",
        "copied ahead on a side stream",
        partial(in_the_way, True, 4.0, 8.0),
        quick=True,
    ),
    healthy("workers", "made by a worker, page-locked by a thread", workers, own_time=False),
    healthy("few-tensors", "four tensors a batch", few_tensors, held_out=True),
    healthy(
        "pageable-hidden",
        "4 MB out of ordinary memory, made by one worker, who is no faster",
        partial(pageable_workers, num_workers=1),
        own_time=False,
    ),
    # More workers do help here, by how many cores there are for them; pinning does not.
    OnDevice(
        "pageable-hidden-long",
        "5 MB, made by two workers, who are slower",
        partial(pageable_workers, megabytes=5.0, spin_ms=4.0, load_ms=30.0),
        ("num-workers",),
        {"num_workers": 3},
        ("pin-memory",),
        own_time=False,
        held_out=True,
        may_be_silent=True,
    ),
    healthy(
        "far-ahead",
        "hundreds of batches ahead of the device, until the epoch ends",
        far_ahead,
        verdict=DEVICE_BOUND,
        quick=True,
    ),
    healthy(
        "far-ahead-full",
        "until the device takes no more",
        partial(far_ahead, 1500),
        verdict=DEVICE_BOUND,
    ),
    healthy(
        "far-ahead-read",
        "until a loss is read, every 400 steps",
        partial(far_ahead, 800, 2.0, 0.5, 400),
        verdict=DEVICE_BOUND,
        held_out=True,
    ),
)
