"""Copies that cost too much: out of ordinary memory, waited for, many and small, in a type too wide."""

from __future__ import annotations

from typing import Any

import torch

from known_cases.case import HABITS, Case, Training

from .stage import SIDE, device, floats, sending, training

OTHER_HABITS = tuple(rule for rule in HABITS if rule != "pin-memory")


def plain(
    pin_memory: bool, non_blocking: bool, megabytes: float = 4.0, spin_ms: float = 4.0, load_ms: float = 6.0
) -> Training:
    return training(floats(megabytes), sending(spin_ms, non_blocking), load_ms, pin_memory=pin_memory)


def pageable(pin_memory: bool = False, non_blocking: bool = False) -> Training:
    return plain(pin_memory, non_blocking)


def pageable_asked(pin_memory: bool = False) -> Training:
    return plain(pin_memory, non_blocking=True)


def pageable_large(pin_memory: bool = False, non_blocking: bool = False) -> Training:
    return plain(pin_memory, non_blocking, megabytes=8.0, spin_ms=8.0, load_ms=4.0)


def pageable_workers(pin_memory: bool = False, non_blocking: bool = False) -> Training:
    return training(floats(4.0), sending(3.0, non_blocking), 8.0, pin_memory=pin_memory, num_workers=1)


def blocking(non_blocking: bool = False) -> Training:
    return plain(True, non_blocking, spin_ms=5.0, load_ms=7.0)


def blocking_large(non_blocking: bool = False) -> Training:
    return plain(True, non_blocking, megabytes=8.0, spin_ms=8.0, load_ms=10.0)


def many_small(packed: bool = False, count: int = 200, depth: int = 1) -> Training:
    """A nested batch of many tensors, copied one by one, against one copy."""
    module = device()

    def make(k: int) -> Any:
        batch: Any = {f"field {n}": torch.rand(16, 16) for n in range(count)}
        for _ in range(depth):
            batch = {"inner": [batch]}
        return batch

    def flat(batch: Any) -> dict[str, torch.Tensor]:
        while "inner" in batch:
            batch = batch["inner"][0]
        return batch

    def step(batch: Any) -> None:
        tensors = flat(batch)
        if packed:
            torch.cat([tensor.reshape(-1) for tensor in tensors.values()]).to("standin")
        else:
            for tensor in tensors.values():
                tensor.to("standin")
        module.spin(3.0)

    return training(make, step, load_ms=2.0)


def many_smaller(packed: bool = False) -> Training:
    return many_small(packed, count=60, depth=3)


class Pictures(torch.utils.data.Dataset[Any]):
    """8-bit pictures, divided by 255 here or on the device."""

    def __init__(self, as_bytes: bool) -> None:
        self.as_bytes = as_bytes
        self.pictures = torch.randint(0, 256, (32, 3, 144, 144), dtype=torch.uint8)

    def __len__(self) -> int:
        return 480

    def __getitem__(self, index: int) -> torch.Tensor:
        picture = self.pictures[index % 32]
        return picture if self.as_bytes else picture.float() / 255


def wide(as_bytes: bool = False, batch_size: int = 16, pin_memory: bool = True) -> Training:
    module = device()

    def step(batch: torch.Tensor) -> None:
        batch.to("standin", non_blocking=True)
        module.spin(1.0)

    def block(loader: Any) -> Any:
        yield from loader
        module.synchronize()

    loader = torch.utils.data.DataLoader(Pictures(as_bytes), batch_size=batch_size, pin_memory=pin_memory)
    return Training(loader, step, size=batch_size, block=block)


def wide_large(as_bytes: bool = False) -> Training:
    return wide(as_bytes, batch_size=32)


PIN = {"pin_memory": True, "non_blocking": True}
FORBIDDEN = OTHER_HABITS

CASES = (
    Case("pageable", "4 MB batches out of ordinary memory, waited for", pageable, ("pin-memory",), PIN, FORBIDDEN,
         quick=True, side=SIDE),
    Case("pageable-asked", "the same with non_blocking=True, which does nothing there", pageable_asked,
         ("pin-memory",), {"pin_memory": True}, FORBIDDEN, side=SIDE),
    Case("pageable-large", "8 MB batches out of ordinary memory", pageable_large, ("pin-memory",), PIN, FORBIDDEN,
         side=SIDE),
    Case("pageable-workers", "the same, made by a worker", pageable_workers, ("pin-memory",), PIN, FORBIDDEN,
         side=SIDE),
    Case("blocking", "page-locked memory, but each copy is waited for", blocking, ("h2d-copies",),
         {"non_blocking": True}, HABITS, quick=True, side=SIDE),
    Case("blocking-large", "the same with 8 MB", blocking_large, ("h2d-copies",), {"non_blocking": True}, HABITS,
         side=SIDE),
    Case("many-small", "200 tensors of 1 kB, copied one by one", many_small, ("h2d-copies",), {"packed": True}, HABITS,
         quick=True, side=SIDE),
    Case("many-smaller", "60 of them, nested more deeply", many_smaller, ("h2d-copies",), {"packed": True}, HABITS,
         side=SIDE),
    Case("wide", "float32 pictures where their 8 bits would do", wide, ("h2d-dtype",), {"as_bytes": True},
         OTHER_HABITS, quick=True, side=SIDE),
    Case("wide-large", "the same, 32 a batch", wide_large, ("h2d-dtype",), {"as_bytes": True}, OTHER_HABITS, side=SIDE),
)  # fmt: skip
