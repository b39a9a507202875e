"""Layouts of one file a sample, and of plain files read in parts."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_materials import Paths, files, looped, made
from .hot_pictures import Pictures, write_picture
from .hot_tables import Archives, write_npz
from .storage_case import Layout

KILOBYTES = 12
MANY = 2_500
WIDE = 64_000
MEMORY = Path("/dev/shm")


def noise(number: int, kilobytes: int = KILOBYTES) -> bytes:
    return np.random.default_rng(number).bytes(kilobytes * 1024)


def write_raw(path: Path, number: int) -> None:
    with path.open("wb") as file:
        file.write(noise(number))
        os.fsync(file.fileno())  # what is not on the disk yet cannot be dropped from memory


def drop(paths: Sequence[str]) -> None:
    """Takes files out of the page cache; of one's own files this needs no rights."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


class Raw(Paths):
    """Bytes as they lie in the file."""

    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.paths[index], "rb") as file:  # noqa: PTH123 as users write it
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


class Part(Dataset):
    """A part of one large file a sample; `reopened` at every access, or opened at the first."""

    def __init__(self, path: str, kilobytes: int, reopened: bool = False, repeat: int = 1) -> None:
        self.path, self.size, self.reopened = path, kilobytes * 1024, reopened
        self.parts = Path(path).stat().st_size // self.size
        self.repeat = repeat
        self.file: Any = None

    def __len__(self) -> int:
        return self.parts * self.repeat

    def __getitem__(self, index: int) -> torch.Tensor:
        index %= self.parts
        if self.reopened:
            with open(self.path, "rb") as file:  # noqa: PTH123 as users write it
                file.seek(index * self.size)
                return torch.frombuffer(bytearray(file.read(self.size)), dtype=torch.uint8)
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)  # noqa: SIM115, PTH123 kept for the next samples
        self.file.seek(index * self.size)
        return torch.frombuffer(bytearray(self.file.read(self.size)), dtype=torch.uint8)


class Lines(Dataset):
    """A JSON line a sample, found by where it begins."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.places = [0]
        for line in self.file:
            self.places.append(self.places[-1] + len(line))

    def __len__(self) -> int:
        return len(self.places) - 1

    def __getitem__(self, index: int) -> torch.Tensor:
        self.file.seek(self.places[index])
        return torch.tensor(json.loads(self.file.readline())["values"])


class Mapped(Dataset):
    """A row of a memory-mapped array a sample."""

    def __init__(self, path: Path) -> None:
        self.rows = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self.rows[index]))


class Cut(Dataset):
    """A row of an array file a sample, cut out of it."""

    def __init__(self, path: Path, rows: int, width: int) -> None:
        self.path, self.rows, self.width = str(path), rows, width

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> torch.Tensor:
        row = np.fromfile(
            self.path, dtype=np.uint8, count=self.width, offset=128 + index * self.width
        )
        return torch.from_numpy(row)


def packed(folder: str, count: int = MANY, kilobytes: int = KILOBYTES) -> str:
    def make(target: Path) -> None:
        with (target / "packed.bin").open("wb") as file:
            for number in range(count):
                file.write(noise(number, kilobytes))
            os.fsync(file.fileno())

    return str(made(folder, "packed", make) / "packed.bin")


def cold(training: Training, paths: Sequence[str]) -> Training:
    """Each epoch begins as if memory had no room for what the one before read."""
    training.begin_epoch = lambda epoch: drop(paths)
    return training


def small_cold(folder: str, better: bool = False) -> Training:
    if better:
        one = packed(folder)
        return cold(looped(Part(one, KILOBYTES), 1, size=32), [one])
    paths = files(folder, "raw", ".bin", write_raw, MANY)
    return cold(looped(Raw(paths, MANY), 1, size=32), paths)


def small_warm(folder: str) -> Training:
    return looped(
        Raw(files(folder, "raw", ".bin", write_raw, MANY), 8_000), 0.5, size=32, workers=2
    )


def small_in_memory(folder: str) -> Training:
    place = tempfile.mkdtemp(prefix="inside-", dir=MEMORY)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return looped(Raw(files(place, "raw", ".bin", write_raw, 500), 12_000), 0.5, size=32)


def larger_than_memory(folder: str) -> Training:
    def make(target: Path) -> None:
        with (target / "rows.npy").open("wb") as file:
            np.save(file, np.frombuffer(noise(0, 256_000), dtype=np.uint8).reshape(-1, WIDE))
            file.flush()
            os.fsync(file.fileno())

    path = made(folder, "rows", make) / "rows.npy"
    return cold(looped(Cut(path, 4000, WIDE), 0.5, size=16), [str(path)])


def png(folder: str) -> Training:
    return looped(Pictures(files(folder, "pictures", ".png", write_picture(128, 128), 400), 800), 2)


def npz(folder: str) -> Training:
    return looped(Archives(files(folder, "archives", ".npz", write_npz, 128), 512), 3)


def memory_mapped(folder: str) -> Training:
    def make(target: Path) -> None:
        np.save(
            target / "rows.npy",
            np.random.default_rng(0).normal(size=(20_000, 256)).astype(np.float32),
        )

    return looped(Mapped(made(folder, "mapped", make) / "rows.npy"), 1, size=64)


def reopened(folder: str, better: bool = False) -> Training:
    return looped(Part(packed(folder), KILOBYTES, reopened=not better, repeat=6), 0.5, size=32)


def json_lines(folder: str) -> Training:
    def make(target: Path) -> None:
        rng = np.random.default_rng(0)
        lines = (
            json.dumps({"name": f"{n:05}", "values": rng.normal(size=600).round(4).tolist()})
            for n in range(1500)
        )
        (target / "rows.jsonl").write_text("\n".join(lines) + "\n")

    return looped(Lines(made(folder, "lines", make) / "rows.jsonl"), 2, size=16)


BETTER = {"better": True}
STORAGE = ("storage-format", "page-cache")
CACHE = ("page-cache",)

CASES = (
    Layout(
        "small-files-cold",
        "many small files, from the disk in every epoch",
        small_cold,
        STORAGE,
        BETTER,
        names=(".bin",),
        opens=1.0,
        mostly="reading",
        words=("pack", "one", "memory"),
    ),
    Layout(
        "small-files-warm",
        "the same from the page cache, in two workers",
        small_warm,
        forbidden=CACHE,
        names=(".bin",),
        opens=1.0,
    ),
    Layout(
        "small-files-in-memory",
        "small files on a file system in memory",
        small_in_memory,
        forbidden=CACHE,
        names=(".bin",),
        mount="memory",
        opens=1.0,
    ),
    Layout(
        "larger-than-memory",
        "rows of a large array, from the disk in every epoch",
        larger_than_memory,
        CACHE,
        names=("npy", ".npy"),
        mostly="reading",
        words=("page cache", "memory"),
        least_blocks=4,
    ),
    Layout(
        "png-files",
        "PNG files: packing them would gain next to nothing",
        png,
        forbidden=STORAGE,
        needs=("PIL",),
        names=(".png",),
        opens=1.0,
        mostly="decoding",
        rejected=("storage-format",),
        words=("decod",),
        quick=True,
    ),
    Layout(
        "npz-files",
        "a compressed archive a sample",
        npz,
        ("storage-format", "hot-function"),
        forbidden=CACHE,
        names=("npz", ".npz"),
        opens=1.0,
        mostly="decoding",
        words=("npz", "compress"),
    ),
    Layout(
        "memory-mapped-array",
        "a memory-mapped array, in the page cache",
        memory_mapped,
        forbidden=STORAGE,
        names=("npy", "memmap"),
    ),
    Layout(
        "file-reopened",
        "one packed file, opened again for every sample",
        reopened,
        (),
        BETTER,
        CACHE,
        names=(".bin",),
        opens=1.0,
        reopened=True,
    ),
    Layout(
        "json-lines",
        "a JSON line a sample, from a file kept open",
        json_lines,
        forbidden=STORAGE,
        mostly="decoding",
    ),
)
