"""The layouts that are tried: how each stores samples, and how it reads them."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...profiler.base.metadata import clean
from .page_cache import flush
from .probe_model import Form, Order

# Large folders are slow on some file systems, and data sets avoid them.
FILES_A_FOLDER = 1000
# Address space, not memory.
LMDB_BYTES = 1 << 40


@dataclass(frozen=True)
class Format:
    """A way to store samples: a row of FORMATS.

    `write` stores samples in the layout's folder; `read` gives those of these numbers, each in
    memory of its own; all in their order, if the format is read in sequence. Encoded formats hold
    bytes, decoded ones arrays.
    """

    name: str
    label: str
    write: Callable[[Layout, Iterable[Any]], object]
    read: Callable[[Layout, Sequence[int]], Iterator[Any]]
    form: Form = "encoded"
    order: Order = "shuffled"
    module: str | None = None  # its library


@dataclass
class Layout:
    """The samples in one format: `fill` it, then read it.

    `cold_s` and `warm_s` are the seconds a sample of each round.
    """

    format: Format
    folder: Path  # its own
    count: int = 0
    whole_bytes: float = 0.0  # of the whole data set
    reason: str | None = None  # why it has no figures
    files: tuple[Path, ...] = ()
    cold_s: list[float] = field(default_factory=list)
    warm_s: list[float] = field(default_factory=list)

    def fill(self, samples: Sequence[Any], seconds: float) -> None:
        """Store samples for this long (one at least), and flush them. What fails is the layout's
        reason."""
        try:
            if self.format.module is not None:
                import_module(self.format.module)
            self.folder.mkdir()
            self.format.write(self, self._taken(samples, seconds))
            self.files = tuple(sorted(path for path in self.folder.rglob("*") if path.is_file()))
            flush(self.files)
        except ImportError:
            self.reason = f'needs {self.format.module}: pip install "loaderscope[storage]"'
        except Exception as error:
            self.reason = f"the samples cannot be stored: {clean(error, 160)}"

    def _taken(self, samples: Iterable[Any], seconds: float) -> Iterator[Any]:
        begun = time.monotonic()
        for sample in samples:
            if self.count and time.monotonic() > begun + seconds:
                return
            array = isinstance(sample, np.ndarray) and not sample.dtype.hasobject
            if self.format.form == "decoded" and not array:
                raise ValueError("they do not decode to one array of numbers each")
            yield sample
            self.count += 1

    def disk_bytes(self) -> int:
        """Allocated on disk, which for small files is more than they hold."""
        about = [path.stat() for path in self.files]
        return sum(each.st_blocks * 512 for each in about) or sum(each.st_size for each in about)


def _write_files(layout: Layout, samples: Iterable[bytes]) -> None:
    for number, sample in enumerate(samples):
        folder = layout.folder / f"{number // FILES_A_FOLDER:04d}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number:08d}").write_bytes(sample)


def _read_files(layout: Layout, order: Sequence[int]) -> Iterator[bytes]:
    for path in [str(layout.files[index]) for index in order]:
        with open(path, "rb") as file:  # noqa: PTH123 - a Path's open costs more than a warm read
            yield file.read()


def _write_lmdb(layout: Layout, samples: Iterable[bytes]) -> None:
    """Key: the sample's number; value: the file's bytes."""
    with (
        import_module("lmdb").open(str(layout.folder), map_size=LMDB_BYTES, sync=False) as opened,
        opened.begin(write=True) as transaction,
    ):
        for number, sample in enumerate(samples):
            transaction.put(b"%08d" % number, sample, append=True)


def _read_lmdb(layout: Layout, order: Sequence[int]) -> Iterator[bytes]:
    with (
        import_module("lmdb").open(
            str(layout.folder), readonly=True, lock=False, readahead=False
        ) as opened,
        opened.begin(buffers=True) as transaction,
    ):
        for index in order:
            yield bytes(transaction.get(b"%08d" % index))


def _write_arrow(layout: Layout, samples: Iterable[bytes]) -> None:
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    rows = pyarrow.table({"data": pyarrow.array(samples, pyarrow.large_binary())})
    with ipc.new_file(str(layout.folder / "data.arrow"), rows.schema) as sink:
        sink.write_table(rows)


def _read_arrow(layout: Layout, order: Sequence[int]) -> Iterator[bytes]:
    with import_module("pyarrow").memory_map(str(layout.files[0])) as source:
        opened = import_module("pyarrow.ipc").open_file(source)
        rows = opened.read_all().column(0)  # mapped: nothing is read yet
        for index in order:
            yield rows[index].as_py()


def _write_tar(layout: Layout, samples: Iterable[bytes]) -> None:
    with tarfile.open(layout.folder / "data.tar", "w") as tar:
        for number, sample in enumerate(samples):
            member = tarfile.TarInfo(f"{number:08d}.bin")
            member.size = len(sample)
            tar.addfile(member, io.BytesIO(sample))


def _read_tar(layout: Layout, order: Sequence[int]) -> Iterator[bytes]:
    with tarfile.open(layout.files[0], "r:") as tar:
        for member, _ in zip(tar, order, strict=False):
            held = tar.extractfile(member)
            assert held is not None
            yield held.read()


def _write_array(layout: Layout, samples: Iterable[Any]) -> None:
    arrays = list(samples)
    kinds = sorted({f"{each.shape} {each.dtype}" for each in arrays})
    if len(kinds) > 1:
        raise ValueError(f"they have different shapes, such as {kinds[0]} and {kinds[1]}")
    np.save(layout.folder / "data.npy", np.stack(arrays))


def _read_array(layout: Layout, order: Sequence[int]) -> Iterator[Any]:
    # Indexing a memmap costs ten times that of an array.
    rows = np.load(layout.files[0], mmap_mode="r").view(np.ndarray)
    return (rows[index].copy() for index in order)


FORMATS = (
    Format("files", "files as they are", _write_files, _read_files),
    Format("lmdb", "LMDB", _write_lmdb, _read_lmdb, module="lmdb"),
    Format("arrow", "Arrow", _write_arrow, _read_arrow, module="pyarrow"),
    Format("tar", "tar", _write_tar, _read_tar, order="in sequence"),
    Format("array", "mapped array", _write_array, _read_array, "decoded"),
)
