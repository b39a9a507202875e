"""Finds the files for a probe: those of a folder, or those that a recorded run read.

Nothing is written, symbolic links are not followed, and hidden names are left out.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...profiler.base.errors import UsageError
from ...profiler.base.host import host_name
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, Run
from ...profiler.store.run.run_finder import find_run
from ...profiler.store.run.run_reader import open_run
from ..storage.files import SUFFIXES

File = tuple[str, int]  # path, bytes

# A walk keeps the path and size of each file: it stops after this many entries.
MAX_ENTRIES = 200_000

# Files that hold many samples, which are packed already.
CONTAINERS = {
    suffix for suffix, kind in SUFFIXES.items() if kind not in ("npz", "npy", "lines", "file")
}


@dataclass(frozen=True)
class Data:
    """Files of one suffix, in the order of paths. `count` and `bytes` are of the whole data set.

    Nothing may be written to `folders`, which hold the files. `partial`: the walk was stopped
    before its end.
    """

    shown: str
    suffix: str
    files: tuple[File, ...]
    count: int
    bytes: int
    folders: tuple[Path, ...]
    partial: bool
    notes: tuple[str, ...] = ()


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
        return _of_folder(path.absolute(), deadline)
    if path.is_file():
        raise UsageError(
            f"{clean(source, 200)} is a file: name the folder that holds the data, or a run"
        )
    return _of_run(open_run(find_run(source)), deadline)


def _of_folder(path: Path, deadline: float) -> Data:
    shown, (found, stopped, unreadable) = clean(path, 200), _walk([path], deadline, deep=True)
    numbers = Counter(suffix_of(name) for name, _ in found)
    if not numbers:
        why = f" ({unreadable} folders cannot be read)" if unreadable else ""
        raise UsageError(f"there are no files in {shown}{why}")
    suffix = _commonest(numbers, shown)
    others = len(found) - numbers[suffix]
    notes = [f"{others:,} files of other kinds were left out"] if others else []
    if unreadable:
        notes.append(f"{unreadable:,} folders cannot be read and were left out")
    files = _of_suffix(found, suffix)
    total = sum(size for _, size in files)
    return Data(clean(path), suffix, files, len(files), total, (path,), stopped, tuple(notes))


def _of_run(run: Run, deadline: float) -> Data:
    loader = max(run.loaders, key=lambda each: sum(_opens(each).values()), default=None)
    opens = _opens(loader) if loader is not None else {}
    if loader is None or not opens:
        kinds = {clean(each.kind, 20) for other in run.loaders for each in other.looks.containers}
        if kinds:
            raise UsageError(
                f"run {run.id} reads its samples from {' and '.join(sorted(kinds))}: they are "
                "packed already, there are no single files to probe"
            )
        raise UsageError(
            f"run {run.id} was not seen to open any files: name the folder of the data instead"
        )
    plain = {name: number for name, number in opens.items() if name not in CONTAINERS}
    suffix = _commonest(plain or opens, f"run {run.id}")
    recorded = [Path(name) for name in loader.looks.folders]
    folders = tuple(path for path in recorded if path.is_absolute() and os.path.isdir(path))  # noqa: PTH112 - it never raises
    if not folders:
        some = f", such as {clean(recorded[0], 160)}," if recorded else ""
        raise UsageError(
            f"the folders that run {run.id} read from{some} are not on this machine: name a folder "
            "instead"
        )
    found, stopped, _ = _walk(folders, deadline, deep=False)
    files = _of_suffix(found, suffix)
    if not files:
        raise UsageError(
            f"the folders that run {run.id} read from hold no {suffix or 'such'} files any more"
        )
    total, count, notes = sum(size for _, size in files), len(files), []
    more = loader.looks.directories > len(folders)  # not all folders are known
    length = _length(loader, suffix) if more else None
    if length is not None and length > count:  # but the number of samples is
        total, count, more = round(total * length / count), length, False
        notes.append("the size of the whole data set is estimated from the mean file")
    host = next((process.host for process in run.processes if loader in process.loaders), None)
    if host is not None and host != host_name():
        notes.append(
            f"the run was recorded on {clean(host, 60)}; its folders were found on this machine too"
        )
    return Data(
        f"run {run.id}", suffix, files, count, total, folders, stopped or more, tuple(notes)
    )


def _of_suffix(found: Iterable[File], suffix: str) -> tuple[File, ...]:
    return tuple(sorted({each for each in found if suffix_of(each[0]) == suffix}))


def _opens(loader: LoaderRun) -> dict[str, int]:
    """How often files of each suffix were seen opened."""
    return {name: n.opens for name, n in loader.looks.suffixes.items() if n.opens > 0}


def _commonest(numbers: Mapping[str, int], where: str) -> str:
    """The suffix of most files. Raises UsageError for files that hold many samples each."""
    suffix = min(numbers, key=lambda each: (-numbers[each], each))
    if suffix in CONTAINERS:
        raise UsageError(
            f"the {numbers[suffix]:,} {suffix} files of {where} hold many samples each: they are "
            "packed already"
        )
    return suffix


def _length(loader: LoaderRun, suffix: str) -> int | None:
    """Files of the whole data set, from its length and the opens a sample."""
    dataset, looks = loader.inspection.dataset, loader.looks
    if dataset is None or not dataset.length or not looks.samples:
        return None
    return round(dataset.length * looks.suffixes[suffix].opens / looks.samples)


def suffix_of(name: str) -> str:
    """The suffix in lower case with its dot, "" for none."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a Path for each of many files costs more than the walk


def _walk(roots: Iterable[Path], deadline: float, *, deep: bool) -> tuple[list[File], bool, int]:
    """The regular files in these folders, or below them; whether the walk was stopped; how many
    folders cannot be read. In the order of names, so that the same folder gives the same files."""
    found: list[File] = []
    seen = unreadable = 0
    waiting = [os.fspath(root) for root in roots][::-1]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                some = sorted(islice(entries, MAX_ENTRIES + 1), key=lambda entry: entry.name)
        except OSError:
            unreadable += 1
            continue
        below = []
        for entry in some:
            seen += 1
            if seen > MAX_ENTRIES or (found and time.monotonic() > deadline):
                return found, True, unreadable
            with suppress(OSError):  # gone meanwhile
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found.append((entry.path, entry.stat(follow_symlinks=False).st_size))
        if deep:
            waiting += reversed(below)
    return found, False, unreadable
