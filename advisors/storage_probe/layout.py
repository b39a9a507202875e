"""One layout of the samples: written once into a folder of its own, then read and timed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .probe_model import Form, Order

Write = Callable[[Any], object]
Read = Callable[[Sequence[int]], Iterator[Any]]


class NotStorable(Exception):
    """This layout cannot hold these samples; the text says why."""


@dataclass(frozen=True)
class Format:
    """A way to store samples: a row of `formats.FORMATS`.

    `open_write` gives a function that stores the next sample, `open_read` one that yields the
    samples of an order, in memory of their own. A format that is read in sequence yields as many
    samples as the order has, from its beginning. Encoded formats hold bytes, decoded ones arrays.
    """

    name: str
    label: str
    open_write: Callable[[Layout], AbstractContextManager[Write]]
    open_read: Callable[[Layout], AbstractContextManager[Read]]
    form: Form = "encoded"
    order: Order = "shuffled"
    module: str | None = None  # its library
    one_shape: bool = False  # all samples must be alike


@dataclass
class Layout:
    """The samples in one format. Life: `load`, `begin`, `add` each sample, `finish`, `reading`.

    `fits_memory` is whether the whole data set does: reading ahead is of use only then. `cold_s`
    and `warm_s` are the seconds a sample of each round, None where a pass was not measured.
    """

    format: Format
    folder: Path  # its own
    max_bytes: int
    max_samples: int
    fits_memory: bool = True
    first: Any = None  # the first sample; others are alike
    count: int = 0
    stored_bytes: int = 0  # of the samples themselves
    source_bytes: int = 0  # of the original files of these samples
    convert_s: float = 0.0
    full: bool = False
    reason: str | None = None  # why it has no figures
    files: tuple[Path, ...] = ()
    cold_s: list[float | None] = field(default_factory=list)
    warm_s: list[float | None] = field(default_factory=list)
    _opened: ExitStack = field(default_factory=ExitStack)

    def load(self) -> None:
        """Import the library; without it, this is the layout's reason."""
        module = self.format.module
        try:
            if module is not None:
                import_module(module)
        except ImportError:
            package = module and module.partition(".")[0]
            self.reason = f'needs {package}: pip install "loaderscope[storage]"'
        except Exception as error:  # whatever a broken installation raises
            self.reason = f"{module} cannot be imported ({type(error).__name__})"

    def begin(self, first: Any) -> None:
        """Open it for writing samples like `first`."""
        self.first = first
        self.folder.mkdir()
        self._write = self._opened.enter_context(self.format.open_write(self))

    def add(self, sample: Any) -> None:
        """Store the next sample. Raises NotStorable, or what its library raises."""
        if self.format.form == "decoded" and sample.dtype.hasobject:
            raise NotStorable("samples hold Python objects")
        if self.format.one_shape:
            here, there = (f"{each.shape} {each.dtype}" for each in (self.first, sample))
            if here != there:
                raise NotStorable(f"samples decode to different shapes, such as {here} and {there}")
        self._write(sample)
        self.count += 1
        self.stored_bytes += len(sample) if self.format.form == "encoded" else sample.nbytes

    def finish(self) -> None:
        """Write what is left, and close."""
        self._opened.close()
        self.files = tuple(sorted(path for path in self.folder.rglob("*") if path.is_file()))

    def reading(self) -> AbstractContextManager[Read]:
        """Open it for reading."""
        return self.format.open_read(self)

    def disk_bytes(self) -> int:
        """Allocated on disk, which for small files is more than they hold."""
        about = [path.stat() for path in self.files]
        return sum(each.st_blocks * 512 for each in about) or sum(each.st_size for each in about)

    def close(self) -> None:
        """Close all handles, also after a failure."""
        with suppress(Exception):  # after a failed write, closing may fail too
            self._opened.close()

    def give_up(self, reason: str) -> None:
        """Close and free the space; `reason` is what the result will say."""
        self.reason = reason
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)
