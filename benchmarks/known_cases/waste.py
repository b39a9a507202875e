"""Work in `__getitem__` that need not be done: for every sample the same, a search through everything,
more than is used, or nothing that training needs. No rule knows these functions by name."""

from __future__ import annotations

import gc
import multiprocessing
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .case import Case, Training
from .materials import takes

LENGTH, SIZE = 2_000, 16
FEW = 96  # of samples that take long


class Numbered(Dataset):
    """Samples that are made in one way, or with `fast` as an engineer would make them."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.values = np.random.default_rng(0).normal(size=(LENGTH, 64)).astype(np.float32)

    def __len__(self) -> int:
        return LENGTH


class Collecting(Numbered):
    def __len__(self) -> int:
        return FEW

    def __getitem__(self, index: int) -> Any:
        row = torch.from_numpy(self.values[index])
        if not self.fast:
            gc.collect()
        return row


@cache
def text_file() -> str:
    path = Path(tempfile.mkdtemp(prefix="known-answers-"), "samples.txt")
    path.write_text("".join(f"{k} {'word ' * 12}\n" for k in range(LENGTH * 4)))
    return str(path)


class Lines(Numbered):
    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.path = text_file()
        self.lines = Path(self.path).read_text().splitlines() if fast else []

    def __getitem__(self, index: int) -> Any:
        if self.fast:
            return len(self.lines[index]), self.values[index]
        with open(self.path) as file:  # noqa: PTH123  as people write it
            lines = file.read().splitlines()
        return len(lines[index]), self.values[index]


class Searched(Numbered):
    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.keys = np.random.default_rng(1).permutation(200_000)
        self.places = {int(key): place for place, key in enumerate(self.keys)} if fast else {}

    def __getitem__(self, index: int) -> Any:
        if self.fast:
            return self.values[index], self.places[index]
        place = np.flatnonzero(self.keys == index)[0]
        return self.values[index], int(place)


class Smoothed(Numbered):
    """A picture is blurred, and then a small part of it is used."""

    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.pictures = np.random.default_rng(2).random((8, 300, 300)).astype(np.float32)

    def __getitem__(self, index: int) -> Any:
        picture = self.pictures[index % 8]
        if self.fast:
            return torch.from_numpy(smoothed(picture[:40, :40]))
        soft = smoothed(picture)
        small = soft[:40, :40]
        return torch.from_numpy(small.copy())


def smoothed(picture: Any) -> Any:
    for axis in (0, 1):
        picture = sum(np.roll(picture, by, axis) for by in range(-3, 4)) / 7
    return picture


@cache
def managed() -> Any:
    return multiprocessing.Manager().dict({k: np.zeros(5000, np.float32) for k in range(LENGTH)})


class Managed(Numbered):
    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.samples = dict(managed()) if fast else managed()

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.samples[index])


def loop(kind: type[Numbered], fast: bool = False) -> Training:
    return Training(DataLoader(kind(fast), SIZE, shuffle=True), takes(0.3), size=SIZE)


def case(name: str, about: str, kind: type[Numbered], *more: str, quick: bool = False) -> Case:
    """`more`: other rules whose advice does away with it as well."""

    def build(fast: bool = False) -> Training:
        return loop(kind, fast)

    return Case(
        name, about, build, ("hot-function", *more), {"fast": True}, quick=quick, record_s=6.0
    )


CASES = (
    case("garbage-collected", "gc.collect() for each sample", Collecting, quick=True),
    case("file-for-a-line", "a text file read whole for one line of it", Lines),
    case(
        "searched-array",
        "an array compared as a whole to find one entry",
        Searched,
        "batched-getitems",
    ),
    case("blurred-whole", "a picture blurred of which a corner is used", Smoothed),
    case("managers-dict", "samples asked for in a Manager's process", Managed),
)
