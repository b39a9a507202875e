"""Loops that were not looked at while tuning was made; `folder` was, once it had shown
something."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler
from torch.utils.data.distributed import DistributedSampler

from known_cases.materials import matmuls, takes

from .loop import LENGTH, Loop
from .materials import FILES, NOISE, ROWS, clicks, conversations, made, photographs, volumes


def augmented(index: int) -> tuple[torch.Tensor]:
    """Flipped, turned, cropped, brightened and normalised by NumPy."""
    values = np.stack([NOISE * (1 + index % 5)] * 3)
    values = np.rot90(values[:, :, ::-1], index % 4, (1, 2))[:, 8:88, 8:88]
    values = np.clip(values * 1.1 + 0.05, 0, 1) ** 0.9
    values = (values - values.mean((1, 2), keepdims=True)) / (
        values.std((1, 2), keepdims=True) + 1e-6
    )
    return (torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)),)


class Clicks(Dataset):
    """One row of a Parquet file, out of its row group."""

    file: Any = None

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        import pyarrow.parquet as pq

        if self.file is None:
            self.file = pq.ParquetFile(clicks() / "clicks.parquet")
        group, row = divmod(index % 20_000, 500)
        table = self.file.read_row_group(group, use_threads=False).slice(row, 1)
        return torch.tensor([float(column[0].as_py()) for column in table.columns]), index


def volume(index: int) -> tuple[torch.Tensor]:
    """A compressed file a sample."""
    with np.load(volumes() / f"{index % FILES}.npz") as file:
        return (torch.from_numpy(file["x"].astype(np.float32)),)


def fetched_and_decoded(index: int) -> tuple[torch.Tensor]:
    """Waited for, then decoded."""
    from PIL import Image

    time.sleep(0.0015)
    with Image.open(photographs() / f"{index % FILES:05}.jpg") as picture:
        picture.draft("RGB", (64, 64))
        return (torch.from_numpy(np.array(picture.convert("RGB"))),)


class Conversations(Dataset):
    """JSON lines, cut into tokens by Python."""

    def __init__(self) -> None:
        self.lines = (conversations() / "lines.jsonl").read_text().splitlines()

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        turns = json.loads(self.lines[index % len(self.lines)])["turns"]
        tokens = [sum(map(ord, word)) for turn in turns for word in turn["text"].split()]
        return torch.tensor(tokens[:128]), index


def folder(index: int) -> tuple[torch.Tensor]:
    """A picture of a folder: decoded, cropped, flipped."""
    from PIL import Image

    with Image.open(photographs() / f"{index % FILES:05}.jpg") as opened:
        picture = opened.convert("RGB").crop((16, 16, 240, 240)).resize((96, 96))
    return (torch.from_numpy(np.array(picture)[:, ::-1].copy()),)


class Weighted(Sampler[int]):
    """Draws rare samples more often, some thousand at a time."""

    def __init__(self) -> None:
        self.weights = np.linspace(1, 3, 5000) / np.linspace(1, 3, 5000).sum()

    def __iter__(self) -> Iterator[int]:
        draw = np.random.default_rng(0)
        for _ in range(LENGTH // 2000):
            yield from draw.choice(5000, 2000, p=self.weights).tolist()

    def __len__(self) -> int:
        return LENGTH


def tokens(index: int) -> tuple[torch.Tensor]:
    draw = random.Random(index)
    return (torch.tensor([draw.randrange(30_000) for _ in range(64)]),)


def held_out(*args: Any, **more: Any) -> Loop:
    return Loop(*args, **more, held_out=True)


LOOPS = (
    held_out("augmented", "augmentation by NumPy beside matmuls", made(augmented), matmuls(1), 16),
    held_out("clicks", "single rows of a Parquet file", Clicks, takes(2), 8, needs=("pyarrow",)),
    held_out(
        "volumes",
        "compressed NumPy files, one worker",
        made(volume),
        takes(5),
        4,
        {"num_workers": 1},
    ),
    held_out(
        "ranks-part",
        "one rank's part, waited for and decoded, two workers",
        made(fetched_and_decoded),
        takes(3),
        8,
        {"num_workers": 2},
        needs=("PIL",),
        order=lambda data: {"sampler": DistributedSampler(data, num_replicas=2, rank=0)},
    ),
    held_out("conversations", "JSON cut into tokens by Python", Conversations, takes(2), 16),
    Loop(
        "folder",
        "a folder of pictures by eight workers",
        made(folder),
        takes(1),
        8,
        {"num_workers": 8},
        needs=("PIL",),
    ),
    held_out(
        "weighted",
        "rare samples drawn more often, by six workers",
        made(lambda i: (ROWS[i % 4096],)),
        takes(0.5),
        32,
        {"num_workers": 6},
        order=lambda data: {"sampler": Weighted()},
    ),
    held_out(
        "masked",
        "tokens drawn by Python, one worker",
        made(tokens),
        takes(6),
        64,
        {"num_workers": 1},
    ),
)
