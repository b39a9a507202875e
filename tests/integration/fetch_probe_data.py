"""Data sets whose reading and transforms are known, for workers of every start method."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset

N = 96
SIDE = 24
SLOW_S = 0.002


def make_pngs(folder: Path) -> list[str]:
    from PIL import Image

    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    paths = [str(folder / f"picture{i}.png") for i in range(N)]
    for path in paths:
        Image.fromarray(rng.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)).save(path)
    return paths


def slow(value: Any) -> Any:
    time.sleep(SLOW_S)
    return value


class Halve:
    def __call__(self, value: Any) -> Any:
        return value / 2


class Compose:
    """As torchvision's and albumentations' do it."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for t in self.transforms:
            value = t(value)
        return value


class Files(Dataset):
    """One file a sample, read by `read`; a pause makes each batch slow enough to be looked at."""

    def __init__(self, paths, read, transform=None, pause_s=0.0003):
        self.paths = paths
        self.read = read
        self.transform = transform
        self.pause_s = pause_s

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.pause_s)
        value = self.read(self.paths[index])
        return value if self.transform is None else self.transform(value)


class BatchedFiles(Files):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[i] for i in indices]


class StreamedFiles(IterableDataset):
    def __init__(self, paths: list[str], read: Callable[[str], Any]) -> None:
        self.paths = paths
        self.read = read

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        for path in self.paths[info.id if info else 0 :: info.num_workers if info else 1]:
            time.sleep(3e-4)
            yield self.read(path)


class Values(Dataset):
    """Values of memory, through a transform."""

    def __init__(self, transform: Any = None, length: int = N) -> None:
        self.transform = transform
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        value = torch.full((4,), float(index))
        return value if self.transform is None else self.transform(value)


class Held(Dataset):
    """Samples out of one container that each process opens when it first needs it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.source: Any = None

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        time.sleep(3e-4)
        if self.source is None:
            self.source = np.memmap(self.path, dtype=np.float32, mode="r", shape=(N, 64))
        return torch.as_tensor(np.array(self.source[index]))


class Deadly(Files):
    def __getitem__(self, index: int) -> Any:
        if index == N - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


def read_png(path: str) -> torch.Tensor:
    from PIL import Image

    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture)).float()


def make_container(folder: Path) -> str:
    """A file of N samples of 64 float32."""
    path = folder / "all.memmap"
    np.arange(N * 64, dtype=np.float32).tofile(path)
    return str(path)
