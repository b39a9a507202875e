"""The sampled fetches of one process, summed: what it writes as JSON, and how the files of several
add up. Everything is bounded, and nothing in a file is trusted.

looks-LOADER-wWORKER.json   of a worker; the next worker of that number goes on from it
looks-LOADER-m.json         of the training process, where it makes the batches itself
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import astuple, replace

from ..base.tolerant import as_json, read_or_empty
from .sampled_fetches import (
    MAX_CONTAINERS,
    MAX_EPOCHS,
    MAX_FOLDERS,
    MAX_MADE,
    MAX_MOUNTS,
    MAX_PATH,
    MAX_REASONS,
    MAX_SUFFIXES,
    ContainerFile,
    EpochTotals,
    FetchesFile,
    MountTotals,
    SampledFetches,
    SampleField,
    SuffixTotals,
    combined_fields,
)

FORMAT = 1

MAX_CHARACTERS = 64_000
MAX_FILES = 1024
NOT_A_LOADER = "not a torch DataLoader: only wait and step can be measured"
OTHER = "other"  # suffixes beyond those that have a place

SUMS = (
    "batches",
    "samples",
    "fetch_ns",
    "opens",
    "different",
    "distinct",
    "reopened",
    "again",
    "same",
)
Rows = dict[Any, list[int]]


class ProbeTotals:
    """As `SampledFetches` names them. No dataclass: making one would cost each training process
    milliseconds."""

    def __init__(self) -> None:
        self.batches = self.samples = self.fetch_ns = 0
        self.opens = self.different = self.distinct = self.reopened = self.again = self.same = 0
        self.directories = 0  # the most any one process saw: workers share them
        self.folders = Counter[str]()  # → opens
        self.mounts = Counter[tuple[str, str]]()  # path, type → opens
        self.containers: dict[str, tuple[str, int | None]] = {}  # path → kind, bytes
        # Open in the training process, and fetching moves the position.
        self.moved: set[str] = set()
        self.reasons: dict[str, str] = {}
        # Rows by what comes first in them (see the types of these names).
        self.suffixes: Rows = {}
        self.epochs: Rows = {}
        self.fields: tuple[SampleField, ...] = ()
        self.made: dict[int, int] = {}  # index → digest of its sample

    def add_epoch(self, epoch: int, values: list[int]) -> None:
        """One fetch or several of one epoch: values as `EpochTotals` has them after `epoch`; -1
        where not measured."""
        _add(self.epochs, MAX_EPOCHS, min(epoch, MAX_EPOCHS - 1), *values)

    def add_suffix(self, suffix: str, opens: int, sized: int, size: int, largest: int) -> None:
        """Opens of files with this suffix."""
        if suffix not in self.suffixes and len(self.suffixes) >= MAX_SUFFIXES:
            suffix = OTHER
        held = self.suffixes.get(suffix, (0,))
        _add(self.suffixes, MAX_SUFFIXES + 1, suffix, opens, sized, size, 0)
        self.suffixes[suffix][3] = max(held[-1], largest)

    def add_mount(self, path: str, kind: str, opens: int) -> None:
        """Opens on this file system."""
        key = path, kind
        if key in self.mounts or len(self.mounts) < MAX_MOUNTS:
            self.mounts[key] += opens

    def add_container(self, path: str, kind: str, size: int | None) -> None:
        """A container seen; its newest size counts."""
        if len(path) <= MAX_PATH and (
            path in self.containers or len(self.containers) < MAX_CONTAINERS
        ):
            self.containers[path] = (kind, size)

    def add_moved(self, paths: Iterable[str]) -> None:
        """Files in which a fetch has moved the position."""
        self.moved |= {path for path in paths if len(path) <= MAX_PATH}
        self.moved = set(sorted(self.moved)[:MAX_CONTAINERS])

    def add_made(self, made: Iterable[tuple[int, int]]) -> None:
        """Digests of samples after their indices; negative: not known."""
        for index, digest in made:
            if digest >= 0 and index in self.made:
                self.again += 1
                self.same += self.made[index] == digest
            elif digest >= 0 and len(self.made) < MAX_MADE:
                self.made[index] = digest

    def add(self, other: SampledFetches) -> None:
        """Add another process's, or an earlier one's."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.directories = max(self.directories, other.directories)
        for suffix, sizes in other.suffixes.items():
            self.add_suffix(suffix[:32], *astuple(sizes))
        self.folders.update(other.folders)
        for mount in other.mounts:
            self.add_mount(*astuple(mount))
        for held in other.containers:
            self.add_container(*astuple(held))
        self.add_moved(other.moved)
        self.add_made(other.made)
        for each in other.epochs:
            epoch, *values = astuple(each)
            self.add_epoch(epoch, values)
        self.fields = combined_fields(self.fields, other.fields)
        for reason, sentence in other.reasons.items():
            if len(self.reasons) < MAX_REASONS:
                self.reasons.setdefault(reason, sentence)

    def fetches(self) -> SampledFetches:
        """The same, as advice has it; of the directories those with the most opens, most first."""
        folders = sorted(self.folders.items(), key=lambda item: (-item[1], item[0]))
        return SampledFetches(
            **{name: getattr(self, name) for name in SUMS},
            directories=self.directories,
            suffixes={suffix: SuffixTotals(*row) for suffix, row in self.suffixes.items()},
            folders=dict(folders[:MAX_FOLDERS]),
            mounts=tuple(MountTotals(*key, opens) for key, opens in self.mounts.items()),
            containers=tuple(ContainerFile(path, *row) for path, row in self.containers.items()),
            moved=tuple(sorted(self.moved)),
            epochs=tuple(EpochTotals(key, *row) for key, row in sorted(self.epochs.items())),
            fields=self.fields,
            made=tuple(self.made.items()),
            reasons=dict(self.reasons),
        )

    def to_json(self) -> str:
        """As one file holds it, at most `MAX_CHARACTERS` long: what names most is left out
        first."""
        data = {"format": FORMAT, **as_json(self.fetches())}
        text = json.dumps(data)
        for name in ("folders", "containers", "moved", "mounts", "fields", "made"):
            if len(text) > MAX_CHARACTERS:
                data[name] = type(data[name])()
                text = json.dumps(data)
        return text


def _add(rows: Rows, most: int, key: Any, *values: int) -> None:
    """To the row of this key, where there is one or room for one; -1 is not measured."""
    held = rows.get(key)
    if held is not None:
        both = zip(held, values, strict=True)
        held[:] = [a + b if a >= 0 and b >= 0 else max(a, b) for a, b in both]
    elif len(rows) < most:
        rows[key] = list(values)


def read_fetches(path: Path) -> SampledFetches:
    """What a process has written; nothing for a file that is missing, torn or of another format.
    Never raises."""
    found = read_or_empty(FetchesFile, path)
    return found if found.format == FORMAT else SampledFetches()


def read_sampled_fetches(
    directory: Path, loader: int, kind: str, reasons: Mapping[str, str]
) -> SampledFetches:
    """The sampled fetches of loader number `loader` of the process whose folder this is. Never
    raises.

    `kind` and `reasons` are the loader's own: why none was sampled stands there under "looks".
    """
    totals, held = ProbeTotals(), Counter[str]()  # containers, by how many workers had them open
    pattern = re.compile(rf"looks-{loader}-(?:m|w\d{{1,5}})\.json")
    with suppress(OSError):
        names = sorted(name for name in os.listdir(directory) if pattern.fullmatch(name))
        for name in names[:MAX_FILES]:
            found = read_fetches(directory / name)
            totals.add(found)
            if "-w" in name:  # what is mapped need not be read from its start to its end
                held.update({each.path for each in found.containers if each.kind != "memmap"})
    if "looks" in reasons:
        totals.reasons["looks"] = reasons["looks"]
    elif kind == "iterable":
        totals.reasons["looks"] = NOT_A_LOADER
    shared = sum(count > 1 for count in held.values())
    return replace(totals.fetches(), shared=shared)
