"""Data sets whose reading is known, for workers of every start method."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset

N = 96
SIDE = 24


def make_pngs(folder: Path) -> list[str]:
    from PIL import Image

    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    paths = [str(folder / f"picture{i}.png") for i in range(N)]
    for path in paths:
        Image.fromarray(rng.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)).save(path)
    return paths


def read_png(path: str) -> torch.Tensor:
    from PIL import Image

    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture)).float()


class Files(Dataset):
    """One picture a sample; a pause makes each batch slow enough to be looked at."""

    def __init__(self, paths: list[str], pause_s: float = 0.0003) -> None:
        self.paths, self.pause_s = paths, pause_s

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.pause_s)
        return read_png(self.paths[index])


class Noisy(Files):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index) + torch.rand(1)


class BatchedFiles(Files):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[i] for i in indices]


class Deadly(Files):
    def __getitem__(self, index: int) -> Any:
        if index == N - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class StreamedFiles(IterableDataset):
    def __init__(self, paths: list[str]) -> None:
        self.files = Files(paths)

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        places = range(N)[info.id :: info.num_workers] if info else range(N)
        return (self.files[place] for place in places)


class Held(Dataset):
    """N samples out of one container that each process opens when it first needs it."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "all.memmap")
        self.source: Any = None
        np.arange(N * 64, dtype=np.float32).tofile(self.path)

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        time.sleep(3e-4)
        if self.source is None:
            self.source = np.memmap(self.path, dtype=np.float32, mode="r", shape=(N, 64))
        return torch.as_tensor(np.array(self.source[index]))
