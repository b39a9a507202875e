"""What the cases of hot functions and layouts are made of: files made once, smooth pictures, and
stored results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .case import Training
from .materials import takes

DISTINCT = 32  # files, and results, of a case
SAMPLES = 768  # of an epoch: each file comes again
MANY_SAMPLES = (
    3 * SAMPLES
)  # where workers share them, so that the start of an epoch is a small part of it


def made(folder: str | Path, name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name`, filled by `make` unless an earlier process did."""
    target = Path(folder, name)
    if not target.exists():
        partial = target.with_name(f"{name}.part")
        partial.mkdir(parents=True)
        make(partial)
        partial.rename(target)
    return target


def files(
    folder: str | Path,
    name: str,
    suffix: str,
    write: Callable[[Path, int], None],
    count: int = DISTINCT,
) -> list[str]:
    """The paths of `count` files that `write(path, number)` makes."""

    def make(target: Path) -> None:
        for number in range(count):
            write(target / f"{number:05}{suffix}", number)

    return [str(path) for path in sorted(made(folder, name, make).iterdir())]


def picture(number: int, height: int, width: int) -> np.ndarray[Any, Any]:
    """A smooth picture with some noise, uint8 of shape (height, width, 3): it compresses as
    photographs do."""
    rng = np.random.default_rng(number)
    coarse = rng.integers(0, 220, (height // 16 + 2, width // 16 + 2, 3))
    grown = np.kron(coarse, np.ones((16, 16, 1), dtype=np.int64))[:height, :width]
    return (grown + rng.integers(0, 12, (height, width, 3))).astype(np.uint8)


class Paths(Dataset):
    """Files, one a sample. `repeat` lets an epoch go through them several times."""

    def __init__(self, paths: Sequence[str], samples: int = SAMPLES) -> None:
        self.paths = (list(paths) * (samples // len(paths) + 1))[:samples]

    def __len__(self) -> int:
        return len(self.paths)


class Stored(Dataset):
    """What another data set gives, made once and read through a memory map: the usual better
    alternative."""

    def __init__(self, folder: str | Path, dataset: Any, distinct: int = DISTINCT) -> None:
        self.samples = len(dataset)

        def make(target: Path) -> None:
            np.save(
                target / "rows.npy",
                np.stack([np.asarray(dataset[index]) for index in range(distinct)]),
            )

        # Copy on write: torch warns of arrays that cannot be written to.
        self.rows = np.load(made(folder, "stored", make) / "rows.npy", mmap_mode="c")

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self.rows[index % len(self.rows)]))


def looped(
    dataset: Any, step_ms: float, size: int = 8, workers: int = 0, **options: Any
) -> Training:
    """A training loop over the data set, shuffled; the step waits for a device."""
    if workers:
        options["persistent_workers"] = True
    loader: DataLoader = DataLoader(
        dataset, batch_size=size, shuffle=True, num_workers=workers, **options
    )
    return Training(loader, takes(step_ms), size=size)
