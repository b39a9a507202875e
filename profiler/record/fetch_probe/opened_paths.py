"""Sums up what a process opened: suffixes, directories, file systems and repetitions, no path."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import PosixPath
from typing import Any

from ...base.clock import now_ns
from ...base.mounts import Entry, Mounts
from ...guard.error_origin import forgiving
from ...guard.static_access import inherits
from ...store.probe_totals import ProbeTotals
from ...store.sampled_fetches import MAX_PATH
from .containers import kind_of, size_of, suffix_of

# The most paths (by their hash) and directories that are known. Further ones are only counted.
MAX_KNOWN = 4096
MAX_DIRECTORIES = 1024
# Limits on asking for sizes, per fetch: network file systems are slow.
MAX_SIZED = 64
MAX_SIZING_NS = 1_000_000

# Opened by the interpreter, or to look at the machine.
_NOT_DATA = (".py", ".pyc", ".so", ".pyd")
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_FILES_AFTER_ALL = "/dev/shm/"  # where data sets are copied to for speed


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
        self._mount_of: dict[str, Entry | None] = {}

    def add(self, opened: Iterable[Any], samples: int) -> int:
        """Add what fetching one batch opened, in that order; returns the number of opens."""
        here = "/"
        with forgiving(OSError):
            here = os.getcwd()
        paths = [os.path.join(here, path) for path in map(_text, opened) if path is not None]
        paths = [path for path in paths if self._is_theirs(path)]
        for path in paths:
            self._count(path)
        self._totals.different += len({*paths})
        self._totals.directories = max(self._totals.directories, len(self._directories))
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
        totals.add_suffix(suffix_of(name), 1, 0, 0, 0)
        if len(self._directories) < MAX_KNOWN:
            self._directories.add(hash(directory))
        if directory in totals.folders or (
            len(totals.folders) < MAX_DIRECTORIES and len(directory) <= MAX_PATH
        ):
            totals.folders[directory] = totals.folders.get(directory, 0) + 1
        mount = self._mount(directory)
        if mount is not None:
            totals.add_mount(mount.path, mount.type, 1)

    def _mount(self, directory: str) -> Entry | None:
        if directory not in self._mount_of:
            if len(self._mount_of) >= MAX_DIRECTORIES:
                return None
            self._mount_of[directory] = self._mounts.of(os.path.realpath(directory))
        return self._mount_of[directory]

    def _sizes(self, paths: list[str]) -> None:
        """Sizes of some of them, spread evenly."""
        until = now_ns() + MAX_SIZING_NS
        for path in paths[:: -(-len(paths) // MAX_SIZED) or 1]:
            with forgiving(OSError, ValueError):
                size = os.stat(path).st_size
                self._totals.add_suffix(suffix_of(path), 0, 1, size, size)
            if now_ns() > until:
                break

    def _containers(self, paths: list[str], samples: int) -> None:
        """A container is opened repeatedly for the samples of one batch."""
        counts = Counter((path, kind) for path in paths if (kind := kind_of(path)) is not None)
        if len(counts) <= samples / 2:
            for (path, kind), count in counts.items():
                if count >= 2:
                    self._totals.add_container(path, kind, size_of(path, kind))


def _text(path: Any) -> str | None:
    """The path as text, None if it is no data. Runs no code of the user's path classes."""
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
