"""What every layout can do: take samples one by one, be flushed, and give them back in an order."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from .probe_model import Form, Order

Read = Callable[[Sequence[int]], Iterator[Any]]


class NotStorable(Exception):
    """These samples do not go into this layout; the text says why."""


class Layout(ABC):
    """One way to store samples, in a folder of its own. Encoded layouts take bytes, decoded ones
    NumPy arrays.

    `fits_memory` is whether the whole data set does: a library's reading ahead is of use only then.

    Life: `load` its library, `begin`, `add` each sample, `finish`; then any number of `reading`.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    form: ClassVar[Form] = "encoded"
    order: ClassVar[Order] = "shuffled"
    module: ClassVar[str | None] = None  # its library
    package: ClassVar[str | None] = None  # as pip calls it, where that differs
    slow_import: ClassVar[bool] = False

    def __init__(
        self, folder: Path, max_bytes: int, max_samples: int, fits_memory: bool = True
    ) -> None:
        self.folder = folder / self.name
        self.max_bytes = max_bytes
        self.max_samples = max_samples
        self.fits_memory = fits_memory
        self.count = 0
        self.stored_bytes = 0  # as they were handed in
        self.source_bytes = 0  # of the original files of these samples
        self.convert_s = 0.0
        self.full = False
        self.reason: str | None = None

    def load(self) -> str | None:
        """Import the library; why it cannot be had, else None."""
        if self.module is None:
            return None
        try:
            import_module(self.module)
        except ImportError:
            return f'needs {self.package or self.module}: pip install "loaderscope[storage]"'
        except Exception as error:  # whatever a broken installation raises
            return f"{self.module} cannot be imported ({type(error).__name__})"
        return None

    def begin(self) -> None:
        """Make the folder, and open for writing."""
        self.folder.mkdir()

    def add(self, sample: Any) -> None:
        """Store the next sample. Raises NotStorable, or what its library raises."""
        self.store(sample)
        self.count += 1
        self.stored_bytes += len(sample) if self.form == "encoded" else sample.nbytes

    @abstractmethod
    def store(self, sample: Any) -> None:
        """Write one sample as number `count`."""

    def finish(self) -> None:
        """Write what is left, and close."""
        self.close()

    def close(self) -> None:  # noqa: B027 - some layouts hold nothing open
        """Let go of every handle; may be called again, and after any failure."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Read]:
        """Open it. What is got then yields the samples of an order, as bytes or arrays of their own
        memory.

        A layout read in sequence yields as many as the order has, from its beginning.
        """

    def pass_samples(self, wished: int) -> int:
        """How many samples a pass of about `wished` has to read: what comes together is read
        together."""
        return max(1, min(wished, self.count))

    def paths(self) -> list[Path]:
        """Its files."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def disk_bytes(self) -> int:
        """Allocated on disk, which for small files is more than they hold."""
        about = [path.stat() for path in self.paths()]
        allocated = sum(each.st_blocks * 512 for each in about)
        return allocated or sum(each.st_size for each in about)

    def give_up(self, reason: str) -> None:
        """Close and free the space; `reason` is what the result will say."""
        self.reason = reason
        try:
            self.close()
        except Exception:  # it could not be written, so closing it may fail too
            pass
        shutil.rmtree(self.folder, ignore_errors=True)
