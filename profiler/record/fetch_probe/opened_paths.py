"""What a process opened, in sums: suffixes, directories, file systems, repetitions and order. No
path is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import PosixPath
from typing import Any

from ...base.clock import now_ns
from ...base.mounts import Mounts
from ...guard.error_origin import is_ours
from ...guard.static_access import inherits
from ...store.probe_totals import ProbeTotals
from ...store.sampled_fetches import MAX_PATH
from .containers import kind_of, size_of, suffix_of

# Paths known by their hash, and directories; more are only counted.
MAX_KNOWN = 4096
MAX_DIRECTORIES = 1024
MAX_ORDERS = 256
# Sizes are asked of so many files a fetch, and for so long: a file system across the network takes
# its time.
MAX_SIZED = 64
MAX_SIZING_NS = 1_000_000

# Opened by the interpreter itself, or to look at the machine.
_NOT_DATA = (".py", ".pyc", ".so", ".pyd")
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_FILES_AFTER_ALL = "/dev/shm/"  # data sets are copied there to be fast
_DIGITS = re.compile(r"(\d+)")

Order = tuple[Any, ...]


class PathSums:
    """Adds what each sampled fetch showed to the process's totals."""

    def __init__(
        self, totals: ProbeTotals, without: str = "", mounts: Mounts | None = None
    ) -> None:
        """Files below the folder `without` are ours."""
        self._totals = totals
        self._ours = without.rstrip(os.sep) + os.sep if without else None
        self._mounts = mounts or Mounts()
        self._known: set[int] = set()
        self._directories: set[int] = set()
        self._mount_of: dict[str, tuple[str, str] | None] = {}
        self._last: Order = ()
        self._last_of: dict[tuple[str, str], Order] = {}

    def add(self, opened: Iterable[Any], samples: int) -> int:
        """Sum up what fetching one batch of so many samples opened, in that order; returns the
        number of opens."""
        paths = [path for path in map(_text, opened) if path is not None]
        if not paths:
            return 0
        here = "" if all(path.startswith("/") for path in paths) else _working_directory()
        paths = [path if path.startswith("/") else os.path.join(here, path) for path in paths]
        paths = [path for path in paths if self._is_theirs(path)]
        if not paths:
            return 0
        for path in paths:
            self._count(path)
        self._totals.directories = len(self._directories)
        self._sizes(paths)
        self._containers(paths, samples)
        return len(paths)

    def _is_theirs(self, path: str) -> bool:
        if self._ours is not None and path.startswith(self._ours):
            return False
        return path.startswith(_FILES_AFTER_ALL) or not path.startswith(_NOT_FILES)

    def _count(self, path: str) -> None:
        totals = self._totals
        totals.opens += 1
        number = hash(path)
        if number in self._known:
            totals.reopened += 1
        elif len(self._known) < MAX_KNOWN:
            self._known.add(number)
            totals.distinct += 1
        directory, name = os.path.split(path)
        suffix = suffix_of(name)
        self._put_in_order(directory, suffix, name)
        totals.add_suffix(suffix, 1, 0, 0, 0)
        if len(self._directories) < MAX_KNOWN:
            self._directories.add(hash(directory))
        if directory in totals.folders or (
            len(totals.folders) < MAX_DIRECTORIES and len(directory) <= MAX_PATH
        ):
            totals.folders[directory] = totals.folders.get(directory, 0) + 1
        mount = self._mount(directory)
        if mount is not None:
            totals.add_mount(*mount, 1)

    def _put_in_order(self, directory: str, suffix: str, name: str) -> None:
        """A file follows the one before of its kind in its directory; the first there, the one
        before anywhere."""
        order: Order = tuple(
            int(p) if i % 2 else p for i, p in enumerate(_DIGITS.split(name[-64:]))
        )
        key = (directory, suffix)
        before = self._last_of.get(key)
        whole = (directory, *order)
        if before is None:
            follows = whole >= self._last if self._last else True
            if len(self._last_of) < MAX_ORDERS:
                self._last_of[key] = order
        else:
            follows = order >= before
            self._last_of[key] = order
        self._last = whole
        self._totals.sequential += follows

    def _mount(self, directory: str) -> tuple[str, str] | None:
        if directory not in self._mount_of:
            if len(self._mount_of) >= MAX_DIRECTORIES:
                return None
            self._mount_of[directory] = self._mounts.of(os.path.realpath(directory))
        return self._mount_of[directory]

    def _sizes(self, paths: list[str]) -> None:
        """Sizes of some of them, spread evenly."""
        until = now_ns() + MAX_SIZING_NS
        for path in paths[:: -(-len(paths) // MAX_SIZED)]:
            try:
                size = os.stat(path).st_size
            except (OSError, ValueError) as error:
                if not is_ours(error):
                    raise
                continue
            self._totals.add_suffix(suffix_of(path), 0, 1, size, size)
            if now_ns() > until:
                break

    def _containers(self, paths: list[str], samples: int) -> None:
        """A container is one opened again and again for the samples of one batch."""
        counts: dict[str, int] = {}
        for path in paths:
            if kind_of(path) is not None:
                counts[path] = counts.get(path, 0) + 1
        if len(counts) <= samples / 2:
            for path, count in counts.items():
                if count >= 2:
                    kind = kind_of(path) or ""
                    self._totals.add_container(path, kind, size_of(path, kind))


def _text(path: Any) -> str | None:
    """The path as text; None for what is no file of data. No code of the user's own path classes is
    run."""
    kind = type(path)
    if inherits(kind, str):
        path = str.__str__(path)
    elif kind is bytes:
        path = os.fsdecode(path)
    elif kind is PosixPath:
        path = str(path)
    else:
        return None
    return None if path.endswith(_NOT_DATA) else path


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        if not is_ours(error):
            raise
        return "/"
