"""One layout of the samples: written once into a folder of its own, then read and timed."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from .page_cache import flush
from .probe_model import Form, Order
from .scratch import free_bytes

Read = Callable[[int], Any]

# This many samples are read back after writing.
CHECKED_SAMPLES = 32
# With less than this left, an error is attributed to the disk.
FULL_BELOW_BYTES = 1_000_000


class NotStorable(Exception):
    """This layout cannot hold these samples; the text says why."""


@dataclass(frozen=True)
class Format:
    """A way to store samples: a row of `formats.FORMATS`.

    `write` stores samples in the layout's folder; `open` gives a function from a sample's number to
    the sample, in memory of its own; a format that is read in sequence gives the first one for 0,
    else the next. Encoded formats hold bytes, decoded ones arrays.
    """

    name: str
    label: str
    write: Callable[[Layout, Iterable[Any]], object]
    open: Callable[[Layout], AbstractContextManager[Read]]
    form: Form = "encoded"
    order: Order = "shuffled"
    module: str | None = None  # its library
    one_shape: bool = False  # all samples must be alike


@dataclass
class Layout:
    """The samples in one format: `fill` it, then read it.

    `fits_memory` is whether the whole data set does: reading ahead is of use only then. `cold_s`
    and `warm_s` are the seconds a sample of each round, None where a pass was not measured.
    """

    format: Format
    folder: Path  # its own
    fits_memory: bool = True
    first: Any = None  # the first sample
    most: int = 0  # how many samples it may hold
    count: int = 0
    source_bytes: int = 0  # of the original files of these samples
    convert_s: float = 0.0
    reason: str | None = None  # why it has no figures
    files: tuple[Path, ...] = ()
    cold_s: list[float | None] = field(default_factory=list)
    warm_s: list[float | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Import the library; without it, this is the layout's reason."""
        try:
            if self.format.module is not None:
                import_module(self.format.module)
        except Exception:  # whatever a broken installation raises
            self.reason = f'needs {self.format.module}: pip install "loaderscope[storage]"'

    def fill(self, samples: Sequence[Any], seconds: float) -> None:
        """Store samples for this long (one at least), flush them, and read some back.

        What fails is the layout's reason, and its space is freed. Raises UsageError where the disk
        is full.
        """
        try:
            self.first, self.most = samples[0], len(samples)
            self.folder.mkdir()
            self.format.write(self, self._taken(samples, seconds))
            self.files = tuple(sorted(path for path in self.folder.rglob("*") if path.is_file()))
            flush(self.files)
            self.convert_s = time.perf_counter() - self._begun
            with self.format.open(self) as read:
                numbers = range(min(self.count, CHECKED_SAMPLES))
                if not all(_same(read(number), samples[number]) for number in numbers):
                    raise NotStorable("it gave other samples than were stored")
        except NotStorable as error:
            self.reason = clean(error, 200)
        except Exception as error:
            if _full(error, self.folder.parent):
                raise UsageError(
                    "the disk became full: lower --bytes, or name a roomier folder with --temp"
                ) from error
            self.reason = f"storing samples failed ({type(error).__name__}: {clean(error, 160)})"
        if self.reason is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _taken(self, samples: Iterable[Any], seconds: float) -> Iterator[Any]:
        # Opening a file takes as long for a larger data set: it is no part of converting.
        self._begun = time.perf_counter()
        for sample in samples:
            if self.count and time.perf_counter() > self._begun + seconds:
                return
            if self.format.form == "decoded" and sample.dtype.hasobject:
                raise NotStorable("samples hold Python objects")
            if self.format.one_shape:
                here, there = (f"{each.shape} {each.dtype}" for each in (self.first, sample))
                if here != there:
                    raise NotStorable(
                        f"samples decode to different shapes, such as {here} and {there}"
                    )
            yield sample
            self.count += 1

    def disk_bytes(self) -> int:
        """Allocated on disk, which for small files is more than they hold."""
        about = [path.stat() for path in self.files]
        return sum(each.st_blocks * 512 for each in about) or sum(each.st_size for each in about)


def _same(got: Any, stored: Any) -> bool:
    if isinstance(stored, np.ndarray):
        got, stored = ((each.dtype, each.shape, each.tobytes()) for each in (got, stored))
    return bool(got == stored)


def _full(error: Exception, folder: Path) -> bool:
    """Whether a full disk caused the error, which LMDB calls an I/O error."""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    return full or free_bytes(folder) < FULL_BELOW_BYTES
