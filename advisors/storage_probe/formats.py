"""The formats that are tried: how each stores samples, and how it reads them."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from .layout import Format, Layout, NotStorable, Read, Write

# Large folders are slow on some file systems, and data sets avoid them.
FILES_A_FOLDER = 1000
# LMDB holds what a transaction wrote in memory until it is committed.
TRANSACTION_BYTES = 16_000_000
# Arrow keeps rows in groups of about this size.
GROUP_BYTES = 4_000_000


@contextmanager
def _write_files(layout: Layout) -> Iterator[Write]:
    def write(sample: bytes) -> None:
        folder = layout.folder / f"{layout.count // FILES_A_FOLDER:04d}"
        folder.mkdir(exist_ok=True)
        (folder / f"{layout.count:08d}").write_bytes(sample)

    yield write


@contextmanager
def _read_files(layout: Layout) -> Iterator[Read]:
    paths = [str(path) for path in layout.files]

    def read(order: Sequence[int]) -> Iterator[bytes]:
        for index in order:
            with open(paths[index], "rb") as file:  # noqa: PTH123 - a Path's open costs more than a warm read
                yield file.read()

    yield read


@contextmanager
def _write_lmdb(layout: Layout) -> Iterator[Write]:
    """Key: the sample's number; value: the file's bytes, or the pickled array."""
    # Only address space: values are rounded up to pages, and the tree has pages of its own.
    size = 4 * layout.max_bytes + 8192 * layout.max_samples + (64 << 20)
    with import_module("lmdb").open(
        str(layout.folder), map_size=size, sync=False, metasync=False
    ) as opened:
        transaction, waiting = opened.begin(write=True), 0

        def write(sample: Any) -> None:
            nonlocal transaction, waiting
            value = sample if layout.format.form == "encoded" else pickle.dumps(sample, 5)
            transaction.put(b"%08d" % layout.count, value, append=True)
            waiting += len(value)
            if waiting > TRANSACTION_BYTES:
                transaction.commit()
                transaction, waiting = opened.begin(write=True), 0

        yield write
        transaction.commit()
        opened.sync(True)


@contextmanager
def _read_lmdb(layout: Layout) -> Iterator[Read]:
    sample_of: Any = bytes if layout.format.form == "encoded" else pickle.loads
    with (
        import_module("lmdb").open(
            str(layout.folder), readonly=True, lock=False, readahead=layout.fits_memory
        ) as opened,
        opened.begin(buffers=True) as transaction,
    ):
        yield lambda order: (sample_of(transaction.get(b"%08d" % index)) for index in order)


@contextmanager
def _write_hdf5(layout: Layout) -> Iterator[Write]:
    """One data set: of bytes of any length, or of arrays, chunked by sample."""
    h5py = import_module("h5py")
    encoded = layout.format.form == "encoded"
    shape = () if encoded else layout.first.shape
    if 0 in shape:
        raise NotStorable("samples decode to empty arrays")
    with h5py.File(layout.folder / "data.h5", "w") as file:
        rows = file.create_dataset(
            "data",
            (layout.max_samples, *shape),
            h5py.vlen_dtype(np.uint8) if encoded else layout.first.dtype,
            chunks=None if encoded else (1, *shape),
        )

        def write(sample: Any) -> None:
            rows[layout.count] = np.frombuffer(sample, np.uint8) if encoded else sample

        yield write


@contextmanager
def _read_hdf5(layout: Layout) -> Iterator[Read]:
    sample_of: Any = np.ndarray.tobytes if layout.format.form == "encoded" else np.asarray
    with import_module("h5py").File(layout.files[0], "r") as file:
        rows = file["data"]
        yield lambda order: (sample_of(rows[index]) for index in order)


@contextmanager
def _write_arrow(layout: Layout) -> Iterator[Write]:
    """One file of groups of rows, as Hugging Face datasets keeps its data."""
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    pyarrow.array([b""])  # the first array makes pyarrow look for pandas: no part of converting
    schema = pyarrow.schema([("data", pyarrow.binary())])
    group: list[bytes] = []
    with ipc.new_file(str(layout.folder / "data.arrow"), schema) as sink:

        def write_group() -> None:
            rows = pyarrow.array(group, pyarrow.binary())
            sink.write(pyarrow.record_batch([rows], schema=schema))
            group.clear()

        waiting = 0

        def write(sample: bytes) -> None:
            nonlocal waiting
            group.append(sample)
            waiting += len(sample)
            if waiting >= GROUP_BYTES:
                write_group()
                waiting = 0

        yield write
        if group:
            write_group()


@contextmanager
def _read_arrow(layout: Layout) -> Iterator[Read]:
    with import_module("pyarrow").memory_map(str(layout.files[0])) as source:
        opened = import_module("pyarrow.ipc").open_file(source)
        rows = opened.read_all().column(0)  # mapped: nothing is read yet
        yield lambda order: (rows[index].as_py() for index in order)


@contextmanager
def _write_tar(layout: Layout) -> Iterator[Write]:
    with tarfile.open(layout.folder / "data.tar", "w") as tar:

        def write(sample: bytes) -> None:
            member = tarfile.TarInfo(f"{layout.count:08d}.bin")
            member.size = len(sample)
            tar.addfile(member, io.BytesIO(sample))

        yield write


@contextmanager
def _read_tar(layout: Layout) -> Iterator[Read]:
    def read(order: Sequence[int]) -> Iterator[bytes]:
        with tarfile.open(layout.files[0], "r:") as tar:
            for member in islice(tar, len(order)):
                held = tar.extractfile(member)
                assert held is not None
                yield held.read()

    yield read


@contextmanager
def _write_array(layout: Layout) -> Iterator[Write]:
    with (layout.folder / "data.bin").open("wb") as file:
        yield lambda sample: file.write(np.ascontiguousarray(sample).data)


@contextmanager
def _read_array(layout: Layout) -> Iterator[Read]:
    shape, dtype = (layout.count, *layout.first.shape), layout.first.dtype
    if 0 in shape:  # nothing can be mapped
        rows: np.ndarray[Any, Any] = np.empty(shape, dtype)
    else:  # indexing a memmap costs ten times that of an array
        rows = np.memmap(layout.files[0], dtype, "r", shape=shape).view(np.ndarray)
    yield lambda order: (rows[index].copy() for index in order)


FILES = Format("files", "files as they are", _write_files, _read_files)
FORMATS = (
    FILES,
    Format("lmdb", "LMDB", _write_lmdb, _read_lmdb, module="lmdb"),
    Format("hdf5", "HDF5", _write_hdf5, _read_hdf5, module="h5py"),
    Format("arrow", "Arrow", _write_arrow, _read_arrow, module="pyarrow"),
    Format("tar", "tar", _write_tar, _read_tar, order="in sequence"),
    Format("array", "mapped array", _write_array, _read_array, "decoded", one_shape=True),
    Format("lmdb-decoded", "LMDB", _write_lmdb, _read_lmdb, "decoded", module="lmdb"),
    Format(
        "hdf5-decoded", "HDF5", _write_hdf5, _read_hdf5, "decoded", module="h5py", one_shape=True
    ),
)
