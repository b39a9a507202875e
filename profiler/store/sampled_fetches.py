"""What was seen from inside the processes that fetch: the files they read, and the callables of a transform chain.

Taken on some batches only, kept as totals a process that fetches (a worker, or main without workers), read by
`LoaderRun.looks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SuffixTotals:
    """Opens of files with one suffix. Of `sized` of them the size is known: `bytes` in all, `max_bytes` the most."""

    opens: int
    sized: int
    bytes: int
    max_bytes: int


@dataclass(frozen=True)
class MountTotals:
    """Opens on one file system, whose root is `path` and type `type` as the kernel names it."""

    path: str
    type: str
    opens: int


@dataclass(frozen=True)
class ContainerFile:
    """A file that holds many samples, seen open or mapped. `kind`: lmdb, hdf5, parquet, arrow, tar, zip, npz, npy,
    memmap or sqlite. `bytes` is its size, None if unknown."""

    kind: str
    path: str
    bytes: int | None


@dataclass(frozen=True)
class EpochTotals:
    """Sampled fetches of one epoch, summed. -1: not measured here."""

    epoch: int
    batches: int
    samples: int
    fetch_ns: int
    fetch_cpu_ns: int
    opens: int
    read_bytes: int  # by system calls (rchar)
    read_calls: int
    disk_bytes: int  # that the storage layer had to bring
    major_faults: int


@dataclass(frozen=True)
class ChainTotals:
    """One callable of a chain. `chain` is where it hangs ("dataset.transform"), `position` its place in it."""

    chain: str
    position: int
    name: str
    calls: int
    total_ns: int


@dataclass(frozen=True)
class SampledFetches:
    """All processes of one loader together. Paths are cleaned for printing. `samples` are the data set's, and their
    fetch took `fetch_ns` in all; of `chain_samples` the chains were timed, and their fetch took `chain_fetch_ns`."""

    batches: int = 0
    samples: int = 0
    fetch_ns: int = 0
    opens: int = 0
    distinct: int = 0  # paths, counted a process
    reopened: int = 0  # opens of a path the same process had opened before, during a sampled fetch
    sequential: int = 0  # opens that follow the one before in the order of paths
    directories: int = 0
    suffixes: Mapping[str, SuffixTotals] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)  # the most used directories → opens
    mounts: tuple[MountTotals, ...] = ()
    containers: tuple[ContainerFile, ...] = ()
    # Open in the training process, and fetching there moves the position: processes forked later share it.
    moved: tuple[str, ...] = ()
    epochs: tuple[EpochTotals, ...] = ()
    chains: tuple[ChainTotals, ...] = ()
    chain_samples: int = 0
    chain_fetch_ns: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)  # what could not be seen, and why
