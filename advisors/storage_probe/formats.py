"""The formats that are tried: how each stores samples, and how it reads them."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from .layout import Format, Layout, NotStorable, Read

# Large folders are slow on some file systems, and data sets avoid them.
FILES_A_FOLDER = 1000
# LMDB holds what a transaction wrote in memory until it is committed, and a group of Arrow's rows
# is made in memory.
GROUP_BYTES = 4_000_000
# Address space, not memory.
LMDB_BYTES = 1 << 40


def _write_files(layout: Layout, samples: Iterable[bytes]) -> None:
    for number, sample in enumerate(samples):
        folder = layout.folder / f"{number // FILES_A_FOLDER:04d}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number:08d}").write_bytes(sample)


@contextmanager
def _open_files(layout: Layout) -> Iterator[Read]:
    paths = [str(path) for path in layout.files]

    def read(index: int) -> bytes:
        with open(paths[index], "rb") as file:  # noqa: PTH123 - a Path's open costs more than a warm read
            return file.read()

    yield read


def _grouped(samples: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    waiting = 0
    for sample in samples:
        group.append(sample)
        waiting += len(sample)
        if waiting >= GROUP_BYTES:
            yield group
            group, waiting = [], 0
    yield group


def _write_lmdb(layout: Layout, samples: Iterable[Any]) -> None:
    """Key: the sample's number; value: the file's bytes, or the pickled array."""
    encoded, number = layout.format.form == "encoded", 0
    values = samples if encoded else (pickle.dumps(sample, 5) for sample in samples)
    with import_module("lmdb").open(
        str(layout.folder), map_size=LMDB_BYTES, sync=False, metasync=False
    ) as opened:
        for group in _grouped(values):
            with opened.begin(write=True) as transaction:
                for value in group:
                    transaction.put(b"%08d" % number, value, append=True)
                    number += 1
        opened.sync(True)


@contextmanager
def _open_lmdb(layout: Layout) -> Iterator[Read]:
    sample_of: Any = bytes if layout.format.form == "encoded" else pickle.loads
    with (
        import_module("lmdb").open(
            str(layout.folder), readonly=True, lock=False, readahead=layout.fits_memory
        ) as opened,
        opened.begin(buffers=True) as transaction,
    ):
        yield lambda index: sample_of(transaction.get(b"%08d" % index))


def _write_hdf5(layout: Layout, samples: Iterable[Any]) -> None:
    """One data set: of bytes of any length, or of arrays, chunked by sample."""
    h5py = import_module("h5py")
    shape, dtype, chunks = (), h5py.vlen_dtype(np.uint8), None
    if layout.format.form == "decoded":
        shape, dtype = layout.first.shape, layout.first.dtype
        chunks = (1, *shape)
    if 0 in shape:
        raise NotStorable("samples decode to empty arrays")
    with h5py.File(layout.folder / "data.h5", "w") as file:
        rows = file.create_dataset("data", (layout.most, *shape), dtype, chunks=chunks)
        for number, sample in enumerate(samples):
            rows[number] = np.frombuffer(sample, np.uint8) if chunks is None else sample


@contextmanager
def _open_hdf5(layout: Layout) -> Iterator[Read]:
    sample_of: Any = np.ndarray.tobytes if layout.format.form == "encoded" else np.asarray
    with import_module("h5py").File(layout.files[0], "r") as file:
        rows = file["data"]
        yield lambda index: sample_of(rows[index])


def _write_arrow(layout: Layout, samples: Iterable[bytes]) -> None:
    """One file of groups of rows, as Hugging Face datasets keeps its data."""
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    pyarrow.array([b""])  # the first array makes pyarrow look for pandas: no part of converting
    schema = pyarrow.schema([("data", pyarrow.binary())])
    with ipc.new_file(str(layout.folder / "data.arrow"), schema) as sink:
        for group in _grouped(samples):
            rows = pyarrow.array(group, pyarrow.binary())
            sink.write(pyarrow.record_batch([rows], schema=schema))


@contextmanager
def _open_arrow(layout: Layout) -> Iterator[Read]:
    with import_module("pyarrow").memory_map(str(layout.files[0])) as source:
        opened = import_module("pyarrow.ipc").open_file(source)
        rows = opened.read_all().column(0)  # mapped: nothing is read yet
        yield lambda index: rows[index].as_py()


def _write_tar(layout: Layout, samples: Iterable[bytes]) -> None:
    with tarfile.open(layout.folder / "data.tar", "w") as tar:
        for number, sample in enumerate(samples):
            member = tarfile.TarInfo(f"{number:08d}.bin")
            member.size = len(sample)
            tar.addfile(member, io.BytesIO(sample))


@contextmanager
def _open_tar(layout: Layout) -> Iterator[Read]:
    def samples() -> Iterator[bytes]:
        with tarfile.open(layout.files[0], "r:") as tar:
            for member in tar:
                held = tar.extractfile(member)
                assert held is not None
                yield held.read()

    following = samples()

    def read(index: int) -> bytes:
        nonlocal following
        if index == 0:
            following = samples()
        return next(following)

    yield read


def _write_array(layout: Layout, samples: Iterable[Any]) -> None:
    with (layout.folder / "data.bin").open("wb") as file:
        for sample in samples:
            file.write(np.ascontiguousarray(sample).data)


@contextmanager
def _open_array(layout: Layout) -> Iterator[Read]:
    shape, dtype = (layout.count, *layout.first.shape), layout.first.dtype
    if 0 in shape:  # nothing can be mapped
        rows: np.ndarray[Any, Any] = np.empty(shape, dtype)
    else:  # indexing a memmap costs ten times that of an array
        rows = np.memmap(layout.files[0], dtype, "r", shape=shape).view(np.ndarray)
    yield lambda index: rows[index].copy()


_LMDB, _HDF5 = (_write_lmdb, _open_lmdb), (_write_hdf5, _open_hdf5)
FORMATS = (
    Format("files", "files as they are", _write_files, _open_files),
    Format("lmdb", "LMDB", *_LMDB, module="lmdb"),
    Format("hdf5", "HDF5", *_HDF5, module="h5py"),
    Format("arrow", "Arrow", _write_arrow, _open_arrow, module="pyarrow"),
    Format("tar", "tar", _write_tar, _open_tar, order="in sequence"),
    Format("array", "mapped array", _write_array, _open_array, "decoded", one_shape=True),
    Format("lmdb-decoded", "LMDB", *_LMDB, "decoded", module="lmdb"),
    Format("hdf5-decoded", "HDF5", *_HDF5, "decoded", module="h5py", one_shape=True),
)
