"""Finds the files for a probe: those of a folder, or those that a recorded run read.

Nothing is written, symbolic links are not followed, and hidden names are left out.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ...profiler.store.run.run_finder import find_run
from ...profiler.store.run.run_reader import open_run
from ..storage.files import SUFFIXES

File = tuple[str, int]  # path, bytes

# A walk keeps the path and size of each file: it stops after this many.
MAX_FILES = 200_000

# Files that hold many samples, which are packed already.
CONTAINERS = {
    suffix for suffix, kind in SUFFIXES.items() if kind not in ("npz", "npy", "lines", "file")
}


@dataclass(frozen=True)
class Data:
    """Files of one suffix, in the order of paths. Nothing may be written to `folders`, which hold
    them. `partial`: there may be more."""

    shown: str
    suffix: str
    files: tuple[File, ...]
    folders: tuple[Path, ...]
    partial: bool

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


def find_data(source: Run | str | os.PathLike[str], seconds: float) -> Data:
    """The files of a folder, or of a run (its value, id, path or "latest").

    An existing folder without run.json is data; everything else is looked up as a run. The walk
    takes about `seconds` at most. Raises UsageError, RunNotFound, RunUnreadable.
    """
    deadline = time.monotonic() + seconds
    if isinstance(source, Run):
        return _of_run(source, deadline)
    path = Path(source)
    if os.path.isdir(path) and not (path / "run.json").exists():  # noqa: PTH112 - it never raises
        return _of_folders(clean(path), (path.absolute(),), deadline, deep=True)
    return _of_run(open_run(find_run(source)), deadline)


def _of_run(run: Run, deadline: float) -> Data:
    looks = max(
        (loader.looks for loader in run.loaders),
        key=lambda each: sum(known.opens for known in each.suffixes.values()),
        default=None,
    )
    if looks is None or not any(known.opens for known in looks.suffixes.values()):
        kinds = {clean(each.kind, 20) for other in run.loaders for each in other.looks.containers}
        if kinds:
            raise UsageError(
                f"run {run.id} reads its samples from {' and '.join(sorted(kinds))}: they are "
                "packed already, there are no single files to probe"
            )
        raise UsageError(
            f"run {run.id} was not seen to open any files: name the folder of the data instead"
        )
    folders = tuple(Path(each) for each in looks.folders if Path(each).is_absolute())
    here = tuple(path for path in folders if os.path.isdir(path))  # noqa: PTH112 - it never raises
    if not here:
        raise UsageError(
            f"the folders that run {run.id} read from are not on this machine: name a folder "
            "instead"
        )
    return _of_folders(f"run {run.id}", here, deadline, more=looks.directories > len(here))


def _of_folders(
    shown: str,
    folders: tuple[Path, ...],
    deadline: float,
    *,
    deep: bool = False,
    more: bool = False,
) -> Data:
    """The files of the commonest suffix in these folders, or below them; `more`: there are others
    elsewhere."""
    found: list[File] = []
    for file in _walk(folders, deep):
        if len(found) == MAX_FILES or (found and time.monotonic() > deadline):
            more = True
            break
        found.append(file)
    numbers = Counter(suffix_of(name) for name, _ in found)
    if not numbers:
        raise UsageError(f"there are no files in {clean(shown, 200)}")
    suffix = min(numbers, key=lambda each: (-numbers[each], each))
    if suffix in CONTAINERS:
        raise UsageError(
            f"the {numbers[suffix]:,} {suffix} files of {clean(shown, 200)} hold many samples "
            "each: they are packed already"
        )
    files = tuple(sorted(each for each in found if suffix_of(each[0]) == suffix))
    return Data(shown, suffix, files, folders, more)


def suffix_of(name: str) -> str:
    """The suffix in lower case with its dot, "" for none."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a Path for each of many files costs more than the walk


def _walk(roots: Sequence[Path], deep: bool) -> Iterator[File]:
    """The regular files in these folders, or below them, as far as they can be read."""
    for root in dict.fromkeys(roots):
        for folder, below, names in os.walk(root):
            below[:] = sorted(name for name in below if deep and not name.startswith("."))
            for name in sorted(names):
                path = os.path.join(folder, name)  # noqa: PTH118 - a Path costs more than the walk
                if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                    yield path, os.path.getsize(path)  # noqa: PTH202
