"""Data sets over files, as people write them, for tests of what their source says."""

import sqlite3
import tarfile
import zipfile
from typing import Any

import torch
from torch.utils.data import Dataset


class Sized(Dataset[Any]):
    def __init__(self, length: int = 40) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return index


class Listed(Dataset[Any]):
    def __init__(self, files: Any) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return len(self.files[index])


class OneFile(Dataset[Any]):
    """Samples in one file, which some open for each of them, and some keep."""

    def __init__(self, path: str = "/data/x", length: int = 1000) -> None:
        self.path, self.length = path, length
        self.handle: Any = None

    def __len__(self) -> int:
        return self.length


class InZip(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        with zipfile.ZipFile(self.path) as archive:
            return torch.tensor(list(archive.read(f"{index}.bin")))


class InTar(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        with tarfile.open(self.path) as archive:
            file = archive.extractfile(f"{index}.bin")
            assert file is not None
            return torch.tensor(list(file.read()))


class InDatabase(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        database = sqlite3.connect(self.path)
        (raw,) = database.execute("SELECT raw FROM samples WHERE id = ?", (index,)).fetchone()
        database.close()
        return torch.tensor(list(raw))


class Rows(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        import h5py

        if self.handle is None:
            self.handle = h5py.File(self.path, "r")["group/rows"]
        return torch.from_numpy(self.handle[index])


class Table(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        import pyarrow.parquet as pq

        if self.handle is None:
            self.handle = pq.ParquetFile(self.path)
        rows = self.handle.metadata.row_group(0).num_rows
        group = self.handle.read_row_group(index // rows)
        return torch.tensor(group["x"][index % rows].as_py())
