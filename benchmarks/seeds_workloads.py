"""The four workloads of benchmarks/seeds.py, as their authors had them, scaled to a small
machine."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

POINTS, FEATURES, POINTS_BATCH = 1_000_000, 33, 100
SAMPLES, SAMPLES_BATCH = 300_000, 300
PATCHES, PATCH_PIXELS = 64, 480
PHOTOS, PHOTO_SIZE, PHOTO_BATCH = 160, (500, 375), 16


@dataclass(frozen=True)
class Workload:
    """`before` is the loader as its author had it, `author` the best he or she came to; both take
    the data set.

    `step` is what the loop does with a batch (a device's computing is waiting, here). One timed
    part of a measurement lasts `part_s` or an epoch, whichever is shorter. `least_gain` and
    `least_of_author` are the goals for the loop after pasting the first recommendation, against
    `before` and `author`.
    """

    title: str
    dataset: Callable[[], Any]
    before: Callable[[Any], Any]
    author: Callable[[Any], Any]
    step: Callable[[Any], None] | None = None
    part_s: float = 1.5
    least_gain: float | None = None
    least_of_author: float | None = None
    reading: bool = False  # state how much of the time is reading and how much decoding
    names: dict[str, Any] = field(
        default_factory=dict
    )  # what the pasted code may use, beside dataset and torch


def takes(milliseconds: float) -> Callable[[Any], None]:
    return lambda batch: time.sleep(milliseconds / 1e3)


class PointDataset(Dataset):
    """A: rows of a tensor and their labels."""

    def __init__(self) -> None:
        self.points = torch.randn(POINTS, FEATURES)
        self.labels = torch.randint(0, 10, (POINTS,))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index], self.labels[index]


class ShuffledIndices:
    """A, its author's best: the tensors indexed with a part of a permutation."""

    def __init__(self, first: torch.Tensor, second: torch.Tensor, size: int) -> None:
        self.first, self.second, self.size = first, second, size

    def __len__(self) -> int:
        return (len(self.first) + self.size - 1) // self.size

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        order = torch.randperm(len(self.first))
        for start in range(0, len(order), self.size):
            chosen = order[start : start + self.size]
            yield self.first[chosen], self.second[chosen]


class TrainingSet(Dataset):
    """D: inputs and targets of a small model."""

    def __init__(self) -> None:
        self.xx = torch.randn(SAMPLES, 20)
        self.yy = torch.randn(SAMPLES, 1)

    def __len__(self) -> int:
        return len(self.xx)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.xx[i], self.yy[i]


class Patches(Dataset):
    """C: PNG patches, read and decoded."""

    def __init__(self, folder: Path, read_ms: float = 0.0) -> None:
        self.files = sorted(str(path) for path in folder.glob("*.png"))
        self.read_ms = read_ms  # of a slow disk: waiting on top of every file

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        return pixels(self.read(index))

    def read(self, file: int) -> bytes:
        if self.read_ms:
            time.sleep(self.read_ms / 1e3)
        with open(self.files[file], "rb") as opened:  # noqa: PTH123 as the loader of such a set would
            return opened.read()


def pixels(encoded: bytes) -> torch.Tensor:
    from PIL import Image

    with Image.open(io.BytesIO(encoded)) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1).contiguous()


class Photos(Dataset):
    """B: photographs, resized to 300 x 300 and made tensors."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(str(path) for path in folder.glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        from PIL import Image

        with Image.open(self.files[index]) as picture:
            resized = picture.convert("RGB").resize((300, 300))
        return torch.from_numpy(np.array(resized)).permute(2, 0, 1).float() / 255, index % 10


def pictures(kind: str, count: int, size: tuple[int, int], names: int) -> Path:
    """A folder of photo-like pictures (smooth shapes and noise), made once. Each has so many names:
    a sample opens a file of its own."""
    from PIL import Image

    folder = Path(__file__).with_name(".data") / f"seeds-{kind}-{count}x{size[0]}x{names}"
    if len(list(folder.glob(f"*.{kind}"))) == count * names:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        rng = np.random.default_rng(number)
        small = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).resize(
            size, Image.Resampling.BICUBIC
        )
        noise = rng.normal(0, 6, (size[1], size[0], 3))
        whole = np.clip(np.asarray(small) + noise, 0, 255).astype(np.uint8)
        Image.fromarray(whole).save(made := folder / f"{number:04}.{kind}")
        for other in range(1, names):
            made.with_stem(f"{number:04}-{other}").hardlink_to(made)
    return folder


def points(**arguments: Any) -> Workload:
    told = ", ".join(f"{name}={value}" for name, value in arguments.items()) or "no workers"
    return Workload(
        f"A: a million points, batch {POINTS_BATCH}, {told}",
        PointDataset,
        lambda dataset: DataLoader(dataset, batch_size=POINTS_BATCH, shuffle=True, **arguments),
        lambda dataset: ShuffledIndices(dataset.points, dataset.labels, POINTS_BATCH),
        least_gain=20.0 if arguments else 7.0,
        names={"PointDataset": PointDataset},
    )


def patches(batch: int, read_ms: float = 0.0) -> Workload:
    where = f", {read_ms:g} ms to read a file" if read_ms else ""
    return Workload(
        f"C: PNG patches, batch {batch}, 2 workers{where}",
        lambda: Patches(pictures("png", PATCHES, (PATCH_PIXELS, PATCH_PIXELS), 16), read_ms),
        lambda dataset: DataLoader(dataset, batch_size=batch, shuffle=True, num_workers=2),
        lambda dataset: DataLoader(
            dataset, batch_size=batch, shuffle=True, num_workers=4, persistent_workers=True
        ),
        takes(batch * 1.0),
        part_s=3.0,
        reading=True,
        names={"Patches": Patches},
    )


WORKLOADS: dict[str, Workload] = {
    "A0": points(),
    "A2": points(num_workers=2),
    "A2deep": points(num_workers=2, prefetch_factor=100),
    "B": Workload(
        "B: photographs resized to 300 x 300, no workers",
        lambda: Photos(pictures("jpg", PHOTOS, PHOTO_SIZE, 4)),
        lambda dataset: DataLoader(dataset, batch_size=PHOTO_BATCH, shuffle=True),
        lambda dataset: DataLoader(
            dataset, batch_size=PHOTO_BATCH, shuffle=True, num_workers=4, persistent_workers=True
        ),
        takes(20),
        part_s=4.0,
        least_of_author=0.9,
        names={"Photos": Photos},
    ),
    "C8": patches(8),
    "C32": patches(32),
    "C128": patches(128),
    "C32slow": patches(32, read_ms=8.0),
    "D": Workload(
        f"D: {SAMPLES:,} samples, batch {SAMPLES_BATCH}",
        TrainingSet,
        lambda dataset: DataLoader(dataset, batch_size=SAMPLES_BATCH, shuffle=True),
        lambda dataset: ShuffledIndices(dataset.xx, dataset.yy, SAMPLES_BATCH),
        least_gain=20.0,
        least_of_author=0.9,
        names={"TrainingSet": TrainingSet},
    ),
}
