"""Layouts of many samples in a file of a library's own format."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_materials import looped, made
from .hot_tables import Chunked, values
from .storage_case import Layout
from .storage_files import BETTER, CACHE, STORAGE, noise

MEMBERS = 400
ROWS, WIDTH, GROUP = 20_000, 64, 2_000


class Contained(Dataset):
    """Samples in one file at `path`. `reopened` at every access; otherwise opened at the first, in
    each worker."""

    def __init__(self, path: Path, length: int, reopened: bool = False) -> None:
        self.path, self.length, self.reopened = str(path), length, reopened
        self.handle: Any = None

    def __len__(self) -> int:
        return self.length


def as_tensor(raw: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


class Lmdb(Contained):
    def __getitem__(self, index: int) -> torch.Tensor:
        import lmdb

        if self.handle is None:
            self.handle = lmdb.open(
                self.path, subdir=False, readonly=True, lock=False, readahead=False
            )
        with self.handle.begin() as transaction:
            return as_tensor(transaction.get(f"{index % MEMBERS:08}".encode()))


class Tar(Contained):
    def __getitem__(self, index: int) -> torch.Tensor:
        if self.reopened:
            with tarfile.open(self.path) as archive:
                return self.member(archive, index)
        if self.handle is None:
            self.handle = tarfile.open(self.path)  # noqa: SIM115 kept for the next samples
        return self.member(self.handle, index)

    def member(self, archive: tarfile.TarFile, index: int) -> torch.Tensor:
        file = archive.extractfile(f"{index:05}.bin")
        assert file is not None
        return as_tensor(file.read())


class Zip(Contained):
    def __getitem__(self, index: int) -> torch.Tensor:
        if self.reopened:
            with zipfile.ZipFile(self.path) as archive:
                return as_tensor(archive.read(f"{index % MEMBERS:05}.bin"))
        if self.handle is None:
            self.handle = zipfile.ZipFile(self.path)
        return as_tensor(self.handle.read(f"{index % MEMBERS:05}.bin"))


class Table(Contained):
    """A row of a Parquet file: its whole row group is read and decoded for it."""

    def __getitem__(self, index: int) -> torch.Tensor:
        import pyarrow.parquet as pq

        if self.handle is None:
            self.handle = pq.ParquetFile(self.path)
        group = self.handle.read_row_group(index // GROUP)
        row = group.slice(index % GROUP, 1)
        return torch.tensor([column[0].as_py() for column in row.columns])


class Mapped(Contained):
    """What the table holds, as an array."""

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.handle is None:
            self.handle = np.load(self.path, mmap_mode="r")
        return torch.from_numpy(np.array(self.handle[index]))


class Database(Contained):
    def __getitem__(self, index: int) -> torch.Tensor:
        if self.handle is None:
            self.handle = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        (raw,) = self.handle.execute(
            "SELECT raw FROM samples WHERE id = ?", (index % MEMBERS,)
        ).fetchone()
        return as_tensor(raw)


def lmdb_file(folder: str) -> Training:
    def make(target: Path) -> None:
        import lmdb

        path = str(target / "data.mdb")
        with (
            lmdb.open(path, subdir=False, map_size=64 << 20) as stored,
            stored.begin(write=True) as transaction,
        ):
            for number in range(MEMBERS):
                transaction.put(f"{number:08}".encode(), noise(number, 48))

    return looped(Lmdb(made(folder, "lmdb", make) / "data.mdb", 10 * MEMBERS), 1, size=16)


def tar(folder: str, better: bool = False) -> Training:
    def make(target: Path) -> None:
        with tarfile.open(target / "samples.tar", "w") as archive:
            for number in range(MEMBERS):
                raw = noise(number)
                entry = tarfile.TarInfo(f"{number:05}.bin")
                entry.size = len(raw)
                archive.addfile(entry, io.BytesIO(raw))

    return looped(
        Tar(made(folder, "tar", make) / "samples.tar", MEMBERS, reopened=not better), 4, size=4
    )


def zipped(folder: str, better: bool = False) -> Training:
    def make(target: Path) -> None:
        with zipfile.ZipFile(target / "samples.zip", "w") as archive:
            for number in range(MEMBERS):
                archive.writestr(f"{number:05}.bin", noise(number))

    return looped(
        Zip(made(folder, "zip", make) / "samples.zip", 2 * MEMBERS, reopened=not better), 3, size=8
    )


def parquet(folder: str, better: bool = False) -> Training:
    def make(target: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = values(0, ROWS * WIDTH).reshape(ROWS, WIDTH)
        table = pa.table({f"feature{n}": rows[:, n] for n in range(WIDTH)})
        pq.write_table(table, target / "rows.parquet", row_group_size=GROUP)
        np.save(target / "rows.npy", rows)

    held = made(folder, "parquet", make)
    length = 400
    found = Mapped(held / "rows.npy", length) if better else Table(held / "rows.parquet", length)
    return looped(found, 4, size=8)


def sqlite(folder: str) -> Training:
    def make(target: Path) -> None:
        with sqlite3.connect(target / "samples.sqlite") as database:
            database.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, raw BLOB)")
            rows = ((number, noise(number, 48)) for number in range(MEMBERS))
            database.executemany("INSERT INTO samples VALUES (?, ?)", rows)
        database.close()

    return looped(
        Database(made(folder, "sqlite", make) / "samples.sqlite", 10 * MEMBERS), 1, size=16
    )


def chunked(rows_a_chunk: int, step_ms: float, samples: int = 400) -> Any:
    def build(folder: str, better: bool = False) -> Training:
        return looped(Chunked(folder, 1 if better else rows_a_chunk, samples), step_ms, size=4)

    return build


EITHER = ("storage-format", "hot-function")
OPENING = ("open", "handle")

CASES = (
    Layout(
        "lmdb",
        "an LMDB file, in the page cache",
        lmdb_file,
        forbidden=STORAGE,
        names=("lmdb",),
        needs=("lmdb",),
    ),
    Layout(
        "tar-reopened",
        "a tar file, opened and searched again for every sample",
        tar,
        EITHER,
        BETTER,
        CACHE,
        names=("tar", ".tar"),
        reopened=True,
        words=OPENING,
    ),
    Layout(
        "zip-reopened",
        "a zip file, opened again for every sample",
        zipped,
        EITHER,
        BETTER,
        CACHE,
        names=("zip", ".zip"),
        reopened=True,
        words=OPENING,
    ),
    Layout(
        "parquet-rows",
        "a Parquet row group read for every row",
        parquet,
        EITHER,
        BETTER,
        CACHE,
        names=("parquet", ".parquet"),
        words=("row group", "parquet", "arrow"),
        needs=("pyarrow",),
    ),
    Layout(
        "hdf5-chunks",
        "HDF5 chunks of 1,000 rows, a row a sample",
        chunked(1000, 4),
        EITHER,
        BETTER,
        CACHE,
        names=("hdf5",),
        mostly="decoding",
        words=("chunk",),
        needs=("h5py",),
    ),
    Layout(
        "hdf5-fitting",
        "HDF5 chunks of the row that is read",
        chunked(1, 1, 2000),
        forbidden=STORAGE,
        names=("hdf5",),
        needs=("h5py",),
    ),
    Layout(
        "sqlite",
        "rows of an SQLite file by their keys",
        sqlite,
        forbidden=STORAGE,
        names=("sqlite",),
    ),
)
