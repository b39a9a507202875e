"""The sampled fetches of one process, summed: what it writes as JSON, how several add up. Bounded in all directions.

looks-LOADER-wWORKER.json   of a worker; the next worker of that number goes on from it
looks-LOADER-m.json         of the training process, where it makes the batches itself
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..base.metadata import clean, integer, sentences

FORMAT = 1

MAX_SUFFIXES = 32
MAX_FOLDERS = 32
MAX_MOUNTS = 32
MAX_CONTAINERS = 32
MAX_EPOCHS = 16  # what later epochs do is added to the last of these
MAX_STEPS = 256  # of all chains together
MAX_REASONS = 16
MAX_PATH = 512  # a longer one is left out: cut, it would name another file
MAX_CHARACTERS = 64_000
OTHER = "other"  # suffixes beyond those that have a place

SUMS = ("batches", "samples", "fetch_ns", "opens", "distinct", "reopened", "sequential",
         "chain_samples", "chain_fetch_ns")  # fmt: skip
EPOCH_VALUES = 9


class ProbeTotals:
    """As `SampledFetches` names them. No dataclass: making one would cost each training process milliseconds."""

    def __init__(self) -> None:
        self.batches = self.samples = self.fetch_ns = 0
        self.opens = self.distinct = self.reopened = self.sequential = 0
        self.chain_samples = self.chain_fetch_ns = 0
        self.directories = 0  # the most any one process saw: workers share them
        self.suffixes: dict[str, list[int]] = {}  # → opens, sized, bytes, most bytes
        self.folders: dict[str, int] = {}  # → opens
        self.mounts: dict[tuple[str, str], int] = {}  # path, type → opens
        self.containers: dict[str, tuple[str, int | None]] = {}  # path → kind, bytes
        self.moved: set[str] = set()  # open in the training process, and fetching moves the position
        self.epochs: dict[int, list[int]] = {}  # → as EpochTotals
        self.chains: dict[tuple[str, int, str], list[int]] = {}  # chain, position, name → calls, ns
        self.reasons: dict[str, str] = {}

    def add_epoch(self, epoch: int, values: list[int]) -> None:
        """One fetch or several of one epoch: values as `EpochTotals` has them after `epoch`; -1 where not measured."""
        epoch = min(epoch, MAX_EPOCHS - 1)
        held = self.epochs.get(epoch)
        if held is None:
            self.epochs[epoch] = list(values)
        else:
            held[:] = [a + b if a >= 0 and b >= 0 else max(a, b) for a, b in zip(held, values, strict=True)]

    def add_suffix(self, suffix: str, opens: int, sized: int, size: int, largest: int) -> None:
        """Opens of files with this suffix."""
        if suffix not in self.suffixes and len(self.suffixes) >= MAX_SUFFIXES:
            suffix = OTHER
        held = self.suffixes.setdefault(suffix, [0, 0, 0, 0])
        held[:] = [held[0] + opens, held[1] + sized, held[2] + size, max(held[3], largest)]

    def add_mount(self, path: str, kind: str, opens: int) -> None:
        """Opens on this file system."""
        key = (path, kind)
        if key in self.mounts or len(self.mounts) < MAX_MOUNTS:
            self.mounts[key] = self.mounts.get(key, 0) + opens

    def add_container(self, path: str, kind: str, size: int | None) -> None:
        """A container seen; its newest size counts."""
        if len(path) <= MAX_PATH and (path in self.containers or len(self.containers) < MAX_CONTAINERS):
            self.containers[path] = (kind, size)

    def add_moved(self, paths: Iterable[str]) -> None:
        """Files in which a fetch has moved the position."""
        self.moved |= {path for path in paths if len(path) <= MAX_PATH}
        self.moved = set(sorted(self.moved)[:MAX_CONTAINERS])

    def add_step(self, chain: str, position: int, name: str, calls: int, total_ns: int) -> None:
        """Calls of one callable of a chain."""
        key = (chain, position, name)
        if key in self.chains or len(self.chains) < MAX_STEPS:
            held = self.chains.setdefault(key, [0, 0])
            held[:] = [held[0] + calls, held[1] + total_ns]

    def add(self, other: ProbeTotals) -> None:
        """Add another process's, or an earlier one's."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.directories = max(self.directories, other.directories)
        for suffix, numbers in other.suffixes.items():
            self.add_suffix(suffix, *numbers)
        for folder, opens in other.folders.items():
            self.folders[folder] = self.folders.get(folder, 0) + opens
        for (path, kind), opens in other.mounts.items():
            self.add_mount(path, kind, opens)
        for path, (kind, size) in other.containers.items():
            self.add_container(path, kind, size)
        self.add_moved(other.moved)
        for epoch, values in other.epochs.items():
            self.add_epoch(epoch, values)
        for (chain, position, name), numbers in other.chains.items():
            self.add_step(chain, position, name, *numbers)
        for reason, sentence in other.reasons.items():
            if len(self.reasons) < MAX_REASONS:
                self.reasons.setdefault(reason, sentence)

    def most_used_folders(self) -> dict[str, int]:
        """The directories with the most opens, most first."""
        ranked = sorted(self.folders.items(), key=lambda item: (-item[1], item[0]))
        return dict(ranked[:MAX_FOLDERS])

    def to_json(self) -> str:
        """As one file holds it, at most `MAX_CHARACTERS` long: what names most is left out first."""
        data: dict[str, Any] = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in SUMS},
            "directories": self.directories,
            "suffixes": self.suffixes,
            "folders": self.most_used_folders(),
            "mounts": [[path, kind, opens] for (path, kind), opens in self.mounts.items()],
            "containers": [[path, kind, size] for path, (kind, size) in self.containers.items()],
            "moved": sorted(self.moved),
            "epochs": [[epoch, *values] for epoch, values in sorted(self.epochs.items())],
            "chains": [[*key, *numbers] for key, numbers in self.chains.items()],
            "reasons": self.reasons,
        }
        text = json.dumps(data)
        for name in ("folders", "containers", "moved", "chains", "mounts"):
            if len(text) <= MAX_CHARACTERS:
                break
            data[name] = type(data[name])()
            text = json.dumps(data)
        return text


def totals_from(data: Mapping[str, Any]) -> ProbeTotals:
    """What `to_json` wrote, as `metadata.read_json` has it; whatever does not fit is left out. Never raises."""
    totals = ProbeTotals()
    for name in SUMS:
        setattr(totals, name, _count(data.get(name)))
    totals.directories = _count(data.get("directories"))
    for suffix, numbers in _items(data.get("suffixes")):
        values = _counts(numbers, 4)
        if values:
            totals.add_suffix(clean(suffix, 32), *values)
    for folder, opens in _items(data.get("folders")):
        if len(totals.folders) < MAX_FOLDERS:
            totals.folders[clean(folder, MAX_PATH)] = _count(opens)
    for row in _rows(data.get("mounts"), 3):
        if isinstance(row[0], str) and isinstance(row[1], str):
            totals.add_mount(clean(row[0], MAX_PATH), clean(row[1], 64), _count(row[2]))
    for row in _rows(data.get("containers"), 3):
        if isinstance(row[0], str) and isinstance(row[1], str):
            size = None if row[2] is None else _count(row[2])
            totals.add_container(clean(row[0], MAX_PATH), clean(row[1], 32), size)
    moved = data.get("moved")
    paths = moved if isinstance(moved, list) else []
    totals.add_moved(clean(path, MAX_PATH) for path in paths if isinstance(path, str))
    for row in _rows(data.get("epochs"), 1 + EPOCH_VALUES):
        if _is_count(row[0]):
            totals.add_epoch(row[0], [value if _is_count(value) else -1 for value in row[1:]])
    for row in _rows(data.get("chains"), 5):
        if isinstance(row[0], str) and _is_count(row[1]) and isinstance(row[2], str):
            totals.add_step(clean(row[0], 200), row[1], clean(row[2], 200), _count(row[3]), _count(row[4]))
    for reason, sentence in sentences(data, "reasons").items():
        if len(totals.reasons) < MAX_REASONS:
            totals.reasons[reason] = sentence
    return totals


def is_known(data: Mapping[str, Any]) -> bool:
    """Whether a file is of a format we read."""
    return integer(data, "format") == FORMAT


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _counts(value: Any, length: int) -> list[int]:
    """So many counts; [] for anything else."""
    return value if isinstance(value, list) and len(value) == length and all(map(_is_count, value)) else []


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _rows(value: Any, length: int) -> list[list[Any]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, list) and len(row) == length]
