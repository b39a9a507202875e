"""Files opened, and folders listed, for every sample: what a first version of a data set does, as
people write it."""

# ruff: noqa: PTH118, PTH120, PTH208

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_case import Hot, Spot
from .hot_materials import MANY_SAMPLES, SAMPLES, Paths, Stored, files, looped, made

LISTED = 400  # files in the folder


def write_tensor(path: Path, number: int) -> None:
    torch.save({"x": torch.rand(32, 32, generator=torch.Generator().manual_seed(number))}, path)


class Saved(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        saved: torch.Tensor = torch.load(self.paths[index])["x"]
        return saved


class Listed(Dataset):
    """The folder is listed to find one name of it."""

    def __init__(self, paths: list[str], better: bool) -> None:
        self.folder = os.path.dirname(paths[0])
        self.names = sorted(os.listdir(self.folder)) if better else None

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        names = self.names or sorted(
            name for name in os.listdir(self.folder) if name.endswith(".npy")
        )
        return torch.from_numpy(np.load(os.path.join(self.folder, names[index % LISTED])))


def write_array(path: Path, number: int) -> None:
    np.save(path, np.full(16, number, dtype=np.float32))


class WholeFile(Dataset):
    """One array file, loaded whole for each row."""

    def __init__(self, folder: str, better: bool) -> None:
        def make(target: Path) -> None:
            np.save(
                target / "rows.npy", np.random.default_rng(0).random((2_000, 128), dtype=np.float32)
            )

        self.path = str(made(folder, "whole", make) / "rows.npy")
        self.rows = np.load(self.path, mmap_mode="c") if better else None

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rows is not None:
            return torch.from_numpy(self.rows[index].copy())
        return torch.from_numpy(np.load(self.path)[index])


def saved(folder: str, better: bool = False) -> Training:
    found = Saved(files(folder, "tensors", ".pt", write_tensor))
    return looped(Stored(folder, found) if better else found, 2)


def saved_two_workers(folder: str, better: bool = False) -> Training:
    found = Saved(files(folder, "tensors", ".pt", write_tensor), MANY_SAMPLES)
    return looped(Stored(folder, found) if better else found, 1, 16, 2)


def listed(folder: str, better: bool = False) -> Training:
    return looped(Listed(files(folder, "listed", ".npy", write_array, LISTED), better), 2)


def whole_file(folder: str, better: bool = False) -> Training:
    return looped(WholeFile(folder, better), 2)


TORCH_LOAD = Spot(("torch",), (), line="torch.load")

CASES = (
    Hot(
        "torch-load",
        "torch.load of a small file a sample",
        saved,
        spot=TORCH_LOAD,
        words=("torch.load",),
    ),
    Hot(
        "torch-load-two-workers",
        "the same in two workers",
        saved_two_workers,
        spot=TORCH_LOAD,
        words=("torch.load",),
    ),
    Hot(
        "listing",
        "a folder of 400 files listed for every sample",
        listed,
        spot=Spot(line="os.listdir"),
        words=("listing", "folder"),
    ),
    Hot(
        "whole-npy",
        "an .npy file of 2,000 rows loaded whole for each row",
        whole_file,
        spot=Spot(("numpy",), ("load", "read_array"), line="np.load"),
        words=(".npy",),
    ),
)
