"""Files and data sets that the loops read, made once in a temporary folder."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import time
import wave
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .loop import LENGTH

FILES = 200


class Made(Dataset):
    """Samples that a function makes of their number."""

    def __init__(self, sample: Callable[[int], Any], length: int = LENGTH) -> None:
        self.sample, self.length = sample, length
        sample(0)  # files are there before the training begins

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return *self.sample(index), index


def made(sample: Callable[[int], Any], length: int = LENGTH) -> Callable[[], Made]:
    return lambda: Made(sample, length)


def once(make: Callable[[Path], Any]) -> Callable[[], Path]:
    """A folder whose files are made by the first who asks, in one process of a run; others find
    them."""

    @cache
    def folder() -> Path:
        place = Path(tempfile.gettempdir(), "loaderscope-tune-benchmark", make.__name__)
        if not (place / "made").exists():
            place.mkdir(parents=True, exist_ok=True)
            make(place)
            (place / "made").touch()
        return place

    return folder


def smooth(rng: Any, *shape: int) -> Any:
    """A picture that compresses as photographs do."""
    from PIL import Image

    coarse = rng.integers(0, 256, (shape[0] // 16, shape[1] // 16, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(shape[:2], Image.Resampling.BICUBIC)


@once
def photographs(place: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(FILES):
        smooth(rng, 256, 256).save(place / f"{number:05}.jpg", quality=90)
    with (place / "landmarks.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", *(f"part_{k}" for k in range(20))])
        rows.writerows([f"{number:05}.jpg", *rng.integers(0, 256, 20)] for number in range(FILES))


@once
def recordings(place: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(FILES):
        with wave.open(str(place / f"{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes((rng.standard_normal(16_000) * 3000).astype("<i2").tobytes())


@once
def patches(place: Path) -> None:
    import h5py

    rng = np.random.default_rng(2)
    with h5py.File(place / "patches.h5", "w") as file:
        for name, size in (("input", 32), ("label", 64)):
            shape = (2000, 3, size, size)
            values = rng.integers(0, 32, shape, dtype=np.uint8)
            file.create_dataset(
                name, data=values, chunks=(1, *shape[1:]), compression="gzip", compression_opts=1
            )


@once
def volumes(place: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(FILES):
        np.savez_compressed(
            place / f"{number}.npz", x=rng.integers(0, 16, (24, 48, 48)).astype(np.int16)
        )


@once
def clicks(place: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(4)
    columns = {f"c{k}": rng.random(20_000, dtype=np.float32) for k in range(24)}
    pq.write_table(pa.table(columns), place / "clicks.parquet", row_group_size=500)


@once
def conversations(place: Path) -> None:
    rng = np.random.default_rng(5)
    words = ["".join(chr(97 + k) for k in rng.integers(0, 26, 6)) for _ in range(500)]
    with (place / "lines.jsonl").open("w") as file:
        for _ in range(2000):
            turns = [{"role": "user", "text": " ".join(rng.choice(words, 60))} for _ in range(3)]
            file.write(json.dumps({"turns": turns}) + "\n")


@once
def records(place: Path) -> None:
    import lmdb

    rng = np.random.default_rng(6)
    with (
        lmdb.open(str(place / "store"), map_size=1 << 28) as store,
        store.begin(write=True) as writing,
    ):
        for number in range(2000):
            buffer = io.BytesIO()
            np.save(buffer, rng.random(256, dtype=np.float32))
            writing.put(f"{number}".encode(), buffer.getvalue())


NOISE = np.random.default_rng(7).random((96, 96)).astype(np.float32)
ROWS = torch.randn(4096, 64, generator=torch.Generator().manual_seed(0))


def worked(index: int, rounds: int) -> np.ndarray[Any, Any]:
    """NumPy on one core, some 0.05 ms a round."""
    values = NOISE + index % 7
    for _ in range(rounds):
        values = np.sqrt(np.abs(np.sin(values)))
    return values[:32, :32]


def waited(milliseconds: float) -> Callable[[int], tuple[torch.Tensor]]:
    """From a store across the network."""

    def sample(index: int) -> tuple[torch.Tensor]:
        time.sleep(milliseconds / 1e3)
        return (ROWS[index % len(ROWS)],)

    return sample
