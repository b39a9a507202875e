"""Layouts that keep each file's bytes as they are: what changes is how they are found and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .layout import Layout, Read

# A folder of the copies holds so many: large folders are slow on some file systems, and data sets
# avoid them.
FILES_A_FOLDER = 1000

# LMDB writes so many values in one transaction; the rest of the process's memory is not its to
# fill.
TRANSACTION_BYTES = 16_000_000


class Files(Layout):
    """The files as they are, copied."""

    name, label = "files", "files as they are"

    def begin(self) -> None:
        super().begin()
        self.copies: list[str] = []

    def store(self, sample: bytes) -> None:
        folder = self.folder / f"{self.count // FILES_A_FOLDER:04d}"
        if self.count % FILES_A_FOLDER == 0:
            folder.mkdir()
        path = folder / f"{self.count:08d}"
        path.write_bytes(sample)
        self.copies.append(str(path))

    def paths(self) -> list[Path]:
        return [Path(copy) for copy in self.copies]

    @contextmanager
    def reading(self) -> Iterator[Read]:
        yield self._read

    def _read(self, order: Sequence[int]) -> Iterator[bytes]:
        for index in order:
            with open(self.copies[index], "rb") as file:  # noqa: PTH123 - a Path's open costs more than a warm read
                yield file.read()


class Lmdb(Layout):
    """One LMDB file: key = the sample's number, value = the file's bytes."""

    name, label, module = "lmdb", "LMDB", "lmdb"
    writer: Any = None
    transaction: Any = None

    def begin(self) -> None:
        super().begin()
        # Only address space: values are rounded up to pages, and the tree has pages of its own.
        size = 4 * self.max_bytes + 8192 * self.max_samples + (64 << 20)
        self.writer = import_module("lmdb").open(
            str(self.folder), map_size=size, sync=False, metasync=False
        )
        self.transaction = self.writer.begin(write=True)
        self.waiting = 0

    def store(self, sample: Any) -> None:
        data = self.to_value(sample)
        self.transaction.put(b"%08d" % self.count, data, append=True)
        self.waiting += len(data)
        if self.waiting > TRANSACTION_BYTES:
            self.transaction.commit()
            self.transaction, self.waiting = self.writer.begin(write=True), 0

    def finish(self) -> None:
        self.transaction.commit()
        self.transaction = None
        self.writer.sync(True)
        self.close()

    def close(self) -> None:
        transaction, self.transaction = self.transaction, None
        writer, self.writer = self.writer, None
        if transaction is not None:
            transaction.abort()
        if writer is not None:
            writer.close()

    def to_value(self, sample: Any) -> bytes:
        """What is stored for a sample."""
        return bytes(sample)

    def from_value(self, value: memoryview) -> Any:
        """The sample, in memory of its own."""
        return bytes(value)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        opened = import_module("lmdb").open(
            str(self.folder), readonly=True, lock=False, readahead=self.fits_memory
        )
        try:
            with opened.begin(buffers=True) as transaction:
                yield lambda order: (
                    self.from_value(transaction.get(b"%08d" % index)) for index in order
                )
        finally:
            opened.close()


class Hdf5(Layout):
    """One HDF5 data set of variable-length bytes."""

    name, label, module = "hdf5", "HDF5", "h5py"
    file: Any = None

    def begin(self) -> None:
        super().begin()
        h5py = import_module("h5py")
        self.path = self.folder / "data.h5"
        self.file = h5py.File(self.path, "w")
        self.rows = self.file.create_dataset(
            "data", (self.max_samples,), dtype=h5py.vlen_dtype(np.uint8)
        )

    def store(self, sample: bytes) -> None:
        self.rows[self.count] = np.frombuffer(sample, np.uint8)

    def close(self) -> None:
        file, self.file, self.rows = self.file, None, None
        if file is not None:
            file.close()

    @contextmanager
    def reading(self) -> Iterator[Read]:
        with import_module("h5py").File(self.path, "r") as file:
            rows = file["data"]
            yield lambda order: (rows[index].tobytes() for index in order)
