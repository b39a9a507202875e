"""Copies that cost too much: out of ordinary memory, waited for, many and small, in a type too
wide, in the way of computing."""

from __future__ import annotations

from typing import Any

import torch

from known_cases.case import HABITS, Training

from .case import OnDevice
from .stage import device, floats, sending, training, until_done

OTHER_HABITS = tuple(rule for rule in HABITS if rule != "pin-memory")


def pageable(
    pinned: bool = False,
    asked: bool = False,
    megabytes: float = 4.0,
    spin_ms: float = 4.0,
    load_ms: float = 6.0,
    **options: Any,
) -> Training:
    """`asked`: for copies that do not wait, which out of ordinary memory wait all the same."""
    step = sending(spin_ms, non_blocking=pinned or asked)
    return training(floats(megabytes), step, load_ms, pin_memory=pinned, **options)


def pageable_asked(pinned: bool = False) -> Training:
    return pageable(pinned, asked=True, megabytes=6.0, spin_ms=3.0, load_ms=5.0)


def pageable_large(pinned: bool = False) -> Training:
    return pageable(pinned, megabytes=8.0, spin_ms=8.0, load_ms=4.0)


def pageable_workers(
    pinned: bool = False,
    megabytes: float = 4.0,
    spin_ms: float = 3.0,
    load_ms: float = 8.0,
    num_workers: int = 2,
) -> Training:
    """Two workers load faster than the device takes the batches, one as fast: there, pinning gains
    nothing."""
    return pageable(
        pinned,
        megabytes=megabytes,
        spin_ms=spin_ms,
        load_ms=load_ms,
        num_workers=num_workers,
        persistent_workers=True,
    )


def pageable_workers_large(pinned: bool = False) -> Training:
    return pageable_workers(pinned, megabytes=6.0)


def pageable_workers_more(pinned: bool = False) -> Training:
    return pageable_workers(pinned, megabytes=3.0, spin_ms=2.0, load_ms=9.0, num_workers=3)


def blocking(
    waited: bool = True, megabytes: float = 4.0, spin_ms: float = 5.0, load_ms: float = 7.0
) -> Training:
    return training(
        floats(megabytes), sending(spin_ms, non_blocking=not waited), load_ms, pin_memory=True
    )


def blocking_large(waited: bool = True) -> Training:
    return blocking(waited, megabytes=8.0, spin_ms=8.0, load_ms=10.0)


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


def wide(as_bytes: bool = False, batch_size: int = 16) -> Training:
    step = sending(1.0, non_blocking=True)
    loader = torch.utils.data.DataLoader(Pictures(as_bytes), batch_size=batch_size, pin_memory=True)
    return Training(loader, step, size=batch_size, block=until_done)


def wide_large(as_bytes: bool = False) -> Training:
    return wide(as_bytes, batch_size=32)


def in_the_way(
    aside: bool = False,
    megabytes: float = 8.0,
    spin_ms: float = 6.0,
    load_ms: float = 1.0,
    **options: Any,
) -> Training:
    """Copied by the stream that computes; `aside`: on one of its own, under the kernels of the
    batch before."""
    module = device()
    made = training(
        floats(megabytes), lambda batch: module.spin(spin_ms), load_ms, pin_memory=True, **options
    )
    side = module.Stream()

    def block(loader: Any) -> Any:
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

    if aside:
        made.block = block
    else:
        made.step = sending(spin_ms, non_blocking=True)
    return made


def in_the_way_large(aside: bool = False) -> Training:
    return in_the_way(aside, megabytes=14.0, spin_ms=9.0, load_ms=2.0)


PINNED, ASIDE = {"pinned": True}, {"aside": True}

CASES = (
    OnDevice(
        "pageable",
        "4 MB batches out of ordinary memory, waited for",
        pageable,
        ("pin-memory",),
        PINNED,
        OTHER_HABITS,
        quick=True,
    ),
    OnDevice(
        "pageable-asked",
        "6 MB, with non_blocking=True, which does nothing there",
        pageable_asked,
        ("pin-memory",),
        PINNED,
        OTHER_HABITS,
    ),
    OnDevice(
        "pageable-large",
        "8 MB batches out of ordinary memory",
        pageable_large,
        ("pin-memory",),
        PINNED,
        OTHER_HABITS,
        held_out=True,
    ),
    OnDevice(
        "pageable-workers",
        "4 MB, made by two workers",
        pageable_workers,
        ("pin-memory",),
        PINNED,
        OTHER_HABITS,
        own_time=False,
    ),
    OnDevice(
        "pageable-workers-large",
        "the same with 6 MB",
        pageable_workers_large,
        ("pin-memory",),
        PINNED,
        OTHER_HABITS,
        own_time=False,
        held_out=True,
    ),
    OnDevice(
        "pageable-workers-more",
        "3 MB, made by three workers",
        pageable_workers_more,
        ("pin-memory",),
        PINNED,
        OTHER_HABITS,
        own_time=False,
        held_out=True,
    ),
    OnDevice(
        "blocking",
        "page-locked memory, but each copy is waited for",
        blocking,
        ("h2d-copies",),
        {"waited": False},
        HABITS,
        quick=True,
    ),
    OnDevice(
        "blocking-large",
        "the same with 8 MB",
        blocking_large,
        ("h2d-copies",),
        {"waited": False},
        HABITS,
        held_out=True,
    ),
    OnDevice(
        "many-small",
        "200 tensors of 1 kB, copied one by one",
        many_small,
        ("h2d-copies",),
        {"packed": True},
        HABITS,
        quick=True,
    ),
    OnDevice(
        "many-smaller",
        "60 of them, nested more deeply",
        many_smaller,
        ("h2d-copies",),
        {"packed": True},
        HABITS,
        held_out=True,
    ),
    OnDevice(
        "wide",
        "float32 pictures where their 8 bits would do",
        wide,
        ("h2d-dtype",),
        {"as_bytes": True},
        OTHER_HABITS,
        quick=True,
    ),
    OnDevice(
        "wide-large",
        "the same, 32 a batch",
        wide_large,
        ("h2d-dtype",),
        {"as_bytes": True},
        OTHER_HABITS,
        held_out=True,
    ),
    OnDevice(
        "in-the-way",
        "copies of 8 MB by the stream that computes",
        in_the_way,
        ("h2d-copies",),
        ASIDE,
        HABITS,
        quick=True,
    ),
    OnDevice(
        "in-the-way-large",
        "the same with 14 MB",
        in_the_way_large,
        ("h2d-copies",),
        ASIDE,
        HABITS,
        held_out=True,
    ),
)
