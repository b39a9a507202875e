"""The loops whose slow-down is measured: small, in memory or from PNG files, and as fast as such
loops get."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

DATA = Path(__file__).parent / ".data"
PICTURES = 256
PIXELS = 192
BATCHED_BATCHES, SAMPLED_BATCHES, TINY_BATCHES = 1500, 300, 600
PNG_BATCH = 8


class Batched:
    """Rows of one tensor, a whole batch at a time."""

    def __init__(self, rows: int, width: int = 16) -> None:
        self.rows = torch.arange(rows * width, dtype=torch.float32).reshape(rows, width)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, indices: list[int]) -> torch.Tensor:
        return self.rows[indices]


class Samples:
    """Rows of one tensor, one at a time."""

    def __init__(self, rows: int, width: int) -> None:
        self.rows = torch.arange(rows * width, dtype=torch.float32).reshape(rows, width)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


class Pngs:
    """PNG files, decoded by Pillow."""

    def __init__(self) -> None:
        self.files = sorted(str(path) for path in pictures().glob("*.png"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        import numpy as np
        from PIL import Image

        with Image.open(self.files[index]) as picture:
            return torch.from_numpy(np.array(picture))


def pictures() -> Path:
    """The folder of PNG files, made once: gradients under noise, so that they compress as
    photographs do."""
    import numpy as np
    from PIL import Image

    folder = DATA / f"png-{PICTURES}x{PIXELS}"
    if len(list(folder.glob("*.png"))) < PICTURES:
        folder.mkdir(parents=True, exist_ok=True)
        slope = np.linspace(0, 180, PIXELS)[:, None, None]
        for number in range(PICTURES):
            rng = np.random.default_rng(number)
            noise = rng.integers(0, 12, (PIXELS, PIXELS, 3))
            pixels = (slope + noise + rng.integers(0, 60)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number:04}.png")
    return folder


def identity(batch: Any) -> Any:
    return batch


def batched(size: int) -> Any:
    dataset: Any = Batched(BATCHED_BATCHES * size)
    return DataLoader(dataset, size, shuffle=True, collate_fn=identity)


def sampled(size: int) -> Any:
    dataset: Any = Samples(SAMPLED_BATCHES * 100, size)
    return DataLoader(dataset, 100, shuffle=True)


def tiny(size: int) -> Any:
    dataset: Any = Samples(TINY_BATCHES * size, 4)
    return DataLoader(dataset, size, shuffle=True, num_workers=2, persistent_workers=True)


def png(size: int) -> Any:
    dataset: Any = Pngs()
    return DataLoader(dataset, size, shuffle=True, num_workers=2, persistent_workers=True)


def computing() -> None:
    """5 ms in which the training process is not busy, as when a device computes."""
    time.sleep(0.005)


@dataclass(frozen=True)
class Workload:
    """`make(size)` gives the loader; one block of measurement is one pass over it, `batches`
    long."""

    title: str
    bound: float  # speed watched / speed bare, at least
    make: Callable[[int], Any]
    size: int  # samples a batch, or values a sample: what `make` takes
    batches: int
    blocks: int  # pairs measured in each process
    step: Callable[[], None] | None = None
    target_us: float | None = (
        None  # `size` is set so that a bare batch takes so many µs, between these sizes
    )
    sizes: tuple[int, int] = (0, 0)
    bound_ns: float | None = None  # a batch, at most
    about: str = ""


WORKLOADS = {
    "batched": Workload(
        title="batched, in memory, no workers",
        bound=0.95,
        bound_ns=1500,
        make=batched,
        size=64,
        target_us=30,
        sizes=(8, 512),
        batches=BATCHED_BATCHES,
        blocks=100,
        about="__getitems__ gives the whole batch as one tensor; collate_fn is the identity",
    ),
    "per-sample": Workload(
        title="per sample, in memory, no workers",
        bound=0.985,
        make=sampled,
        size=64,
        target_us=200,
        sizes=(1, 4096),
        batches=SAMPLED_BATCHES,
        blocks=60,
        about="batches of 100 rows of a tensor, default collate",
    ),
    "tiny-workers": Workload(
        title="two workers, tiny batches",
        bound=0.97,
        make=tiny,
        size=4,
        batches=TINY_BATCHES,
        blocks=100,
        about="batches of 4 tensors of 16 bytes; persistent workers",
    ),
    "png-workers": Workload(
        title="PNG decode, two workers, 5 ms compute",
        bound=0.99,
        make=png,
        size=PNG_BATCH,
        batches=PICTURES // PNG_BATCH,
        blocks=20,
        step=computing,
        about=f"batches of 8 PNG files of {PIXELS}x{PIXELS}; compute is a sleep; persistent "
        "workers",
    ),
}
