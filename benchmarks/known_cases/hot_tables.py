"""Tables and archives of which every access takes or unpacks more than the sample."""

from __future__ import annotations

import gzip
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_case import Hot, Spot
from .hot_materials import DISTINCT, MANY_SAMPLES, SAMPLES, Paths, Stored, files, looped, made

LENGTH = 6_000
WIDTH = 512


def values(number: int, size: int = 60_000) -> np.ndarray[Any, Any]:
    """Numbers that compress to about a third."""
    return (np.random.default_rng(number).integers(0, 60, size) / 4).astype(np.float32)


class Frame(Dataset):
    """A row of a DataFrame a sample."""

    def __init__(self, better: bool) -> None:
        import pandas as pd

        numbers = np.random.default_rng(0).normal(size=(16_000, 12)).astype(np.float32)
        self.frame = pd.DataFrame(numbers, columns=[f"feature{n}" for n in range(12)])
        self.rows = self.frame.to_numpy() if better else None

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rows is not None:
            return torch.from_numpy(self.rows[index].copy())
        return torch.from_numpy(self.frame.iloc[index].to_numpy(copy=True))


class Rows(Dataset):
    """A row of a Hugging Face data set a sample."""

    def __init__(self, folder: str, better: bool) -> None:
        from datasets import Dataset as Table
        from datasets import disable_progress_bars, load_from_disk

        disable_progress_bars()

        def make(target: Path) -> None:
            rows = np.random.default_rng(0).normal(size=(8_000, 16)).astype(np.float32)
            Table.from_dict({"values": list(rows), "label": list(range(8_000))}).save_to_disk(
                str(target / "table")
            )

        self.table = load_from_disk(str(made(folder, "rows", make) / "table"))
        if better:
            self.values = np.stack(self.table.with_format("numpy")["values"][:])
        self.better = better

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.better:
            return torch.from_numpy(self.values[index])
        row = self.table[index]
        return torch.tensor(row["values"])


def write_npz(path: Path, number: int) -> None:
    np.savez_compressed(path, values=values(number))


class Archives(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        with np.load(self.paths[index]) as archive:
            return torch.from_numpy(archive["values"])


def write_gzip(path: Path, number: int) -> None:
    path.write_bytes(gzip.compress(values(number).tobytes(), 6))


class Zipped(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        with gzip.open(self.paths[index], "rb") as file:
            return torch.from_numpy(np.frombuffer(bytearray(file.read()), dtype=np.float32))


class Compressed(Dataset):
    """Compressed bytes in memory."""

    def __init__(self) -> None:
        self.blobs = [zlib.compress(values(number).tobytes(), 6) for number in range(DISTINCT)]

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        raw = zlib.decompress(self.blobs[index % DISTINCT])
        return torch.from_numpy(np.frombuffer(bytearray(raw), dtype=np.float32))


class Pickled(Dataset):
    """Python objects, pickled one by one."""

    def __init__(self) -> None:
        self.blobs = [
            pickle.dumps([{"x": float(x), "n": n} for n, x in enumerate(values(k, 4000))])
            for k in range(DISTINCT)
        ]

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        points = pickle.loads(self.blobs[index % DISTINCT])
        return torch.tensor([points[0]["x"], points[-1]["x"], len(points)])


class Chunked(Dataset):
    """A row of an HDF5 file a sample. Chunks of 2 MB do not fit the chunk cache: each row is a
    chunk decompressed."""

    def __init__(self, folder: str, rows_a_chunk: int, samples: int = 400) -> None:
        import h5py

        def make(target: Path) -> None:
            with h5py.File(target / "rows.h5", "w") as file:
                rows = values(0, LENGTH * WIDTH).reshape(LENGTH, WIDTH)
                file.create_dataset(
                    "rows", data=rows, chunks=(rows_a_chunk, WIDTH), compression="gzip"
                )

        self.path = str(made(folder, f"chunks-of-{rows_a_chunk}", make) / "rows.h5")
        self.samples = samples
        self.rows: Any = None

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        import h5py

        if self.rows is None:
            self.rows = h5py.File(self.path, "r")["rows"]
        return torch.from_numpy(self.rows[index % 400 * 15])


def frame(folder: str, better: bool = False) -> Training:
    return looped(Frame(better), 2, size=256)


def hf(folder: str, better: bool = False) -> Training:
    return looped(Rows(folder, better), 2, size=100)


def unpacked(
    dataset: Any, suffix: str, write: Any, step_ms: float, size: int = 8, workers: int = 0
) -> Any:
    def build(folder: str, better: bool = False) -> Training:
        found = dataset(
            files(folder, "archives", suffix, write), MANY_SAMPLES if workers else SAMPLES
        )
        return looped(Stored(folder, found) if better else found, step_ms, size, workers)

    return build


def blobs(dataset: Any, step_ms: float) -> Any:
    def build(folder: str, better: bool = False) -> Training:
        found = dataset()
        return looped(Stored(folder, found) if better else found, step_ms)

    return build


def chunks(folder: str, better: bool = False) -> Training:
    return looped(Chunked(folder, 1 if better else 1000), 4, size=4)


CASES = (
    Hot(
        "iloc",
        "a row of a DataFrame a sample, by .iloc",
        frame,
        spot=Spot(("pandas",)),
        words=("iloc", "DataFrame"),
        needs=("pandas",),
        quick=True,
    ),
    Hot(
        "hf-rows",
        "a row of a Hugging Face data set a sample, as Python lists",
        hf,
        spot=Spot(("datasets", "pyarrow", "fsspec")),
        words=("datasets", "Hugging Face", "with_format"),
        needs=("datasets",),
    ),
    Hot(
        "npz",
        "a compressed .npz file a sample",
        unpacked(Archives, ".npz", write_npz, 4),
        spot=Spot(
            ("numpy", "python", "zipfile", "zlib"),
            ("read", "_read1", "_read2", "read_array", "_update_crc"),
        ),
        words=("npz", "zlib", "compress"),
    ),
    Hot(
        "gzip",
        "a gzip file a sample, in two workers",
        unpacked(Zipped, ".gz", write_gzip, 2, 16, 2),
        spot=Spot(("gzip", "python", "_compression", "compression"), ("read", "readall")),
        words=("gzip", "zlib", "compress"),
    ),
    Hot(
        "zlib",
        "compressed bytes in memory",
        blobs(Compressed, 2),
        spot=Spot(line="zlib.decompress("),
        words=("zlib", "compress"),
    ),
    Hot(
        "pickle",
        "a pickled list of dicts a sample",
        blobs(Pickled, 2),
        spot=Spot(line="pickle.loads("),
        words=("pickle",),
    ),
    Hot(
        "h5py-chunks",
        "a row of an HDF5 file a sample, in compressed chunks of 1,000",
        chunks,
        spot=Spot(("h5py",)),
        words=("h5py", "HDF5"),
        needs=("h5py",),
    ),
)
