"""Layouts that keep what the decoder makes of each file: nothing is left to do but to read it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from .encoded import Lmdb
from .layout import Layout, NotStorable, Read

Array = np.ndarray[Any, Any]


class OneShape(Layout):
    """Samples that are all alike: one array whose first axis is the sample."""

    form = "decoded"
    shape: tuple[int, ...] | None = None
    dtype: Any = None

    def store(self, sample: Array) -> None:
        if self.shape is None:
            if sample.dtype.hasobject:
                raise NotStorable("samples hold Python objects")
            self.shape, self.dtype = sample.shape, sample.dtype
            self.first()
        elif (sample.shape, sample.dtype) != (self.shape, self.dtype):
            here, there = (
                f"{s} {d}" for s, d in ((self.shape, self.dtype), (sample.shape, sample.dtype))
            )
            raise NotStorable(f"samples decode to different shapes, such as {here} and {there}")
        self.row(sample)

    def first(self) -> None:
        """The shape and type are known."""
        raise NotImplementedError

    def row(self, sample: Array) -> None:
        """Store one sample, as number `count`."""
        raise NotImplementedError


class MappedArray(OneShape):
    """One memory-mapped NumPy array."""

    name, label = "array", "mapped array"
    file: Any = None

    def begin(self) -> None:
        super().begin()
        self.path = self.folder / "data.bin"

    def first(self) -> None:
        self.file = self.path.open("wb")

    def row(self, sample: Array) -> None:
        self.file.write(np.ascontiguousarray(sample).data)

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()

    @contextmanager
    def reading(self) -> Iterator[Read]:
        assert self.shape is not None
        if 0 in self.shape:  # nothing can be mapped
            shape, dtype = self.shape, self.dtype
            yield lambda order: (np.empty(shape, dtype) for _ in order)
            return
        mapped = np.memmap(self.path, self.dtype, "r", shape=(self.count, *self.shape))
        rows = mapped.view(np.ndarray)  # indexing a memmap costs ten times that of an array
        yield lambda order: (rows[index].copy() for index in order)


class DecodedHdf5(OneShape):
    """One HDF5 data set, chunked by sample."""

    name, label, module = "hdf5-decoded", "HDF5", "h5py"
    opened: Any = None
    rows: Any = None

    def begin(self) -> None:
        super().begin()
        self.path = self.folder / "data.h5"
        self.opened = import_module("h5py").File(self.path, "w")

    def first(self) -> None:
        assert self.shape is not None
        if 0 in self.shape:
            raise NotStorable("samples decode to empty arrays")
        chunks = (1, *self.shape)
        self.rows = self.opened.create_dataset(
            "data", (self.max_samples, *self.shape), self.dtype, chunks=chunks
        )

    def row(self, sample: Array) -> None:
        self.rows[self.count] = sample

    def close(self) -> None:
        opened, self.opened, self.rows = self.opened, None, None
        if opened is not None:
            opened.close()

    @contextmanager
    def reading(self) -> Iterator[Read]:
        with import_module("h5py").File(self.path, "r") as file:
            rows = file["data"]
            yield lambda order: (np.asarray(rows[index]) for index in order)


class DecodedLmdb(Lmdb):
    """One LMDB file of arrays, each with its own shape: dtype and shape, then the values."""

    name, label, form = "lmdb-decoded", "LMDB", "decoded"

    def to_value(self, sample: Array) -> bytes:
        if sample.dtype.hasobject or sample.dtype.fields is not None:
            raise NotStorable("samples are not plain arrays")
        head = struct.pack(
            f"<8sB{sample.ndim}q", sample.dtype.str.encode(), sample.ndim, *sample.shape
        )
        return head + sample.tobytes()

    def from_value(self, value: memoryview) -> Array:
        name, axes = struct.unpack_from("<8sB", value)
        shape = struct.unpack_from(f"<{axes}q", value, 9)
        dtype = np.dtype(name.rstrip(b"\0").decode())
        count = int(np.prod(shape, dtype=np.int64))
        own: Array = np.frombuffer(value, dtype, count, 9 + 8 * axes).reshape(shape).copy()
        return own
