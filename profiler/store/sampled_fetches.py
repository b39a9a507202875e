"""What was seen from inside the processes that fetch: the files they read, and the samples.

Taken on some batches only, kept as totals a process that fetches (a worker, or main without
workers), read by `LoaderRun.looks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..base.tolerant import Count

MAX_SUFFIXES = 32
MAX_FOLDERS = 32
MAX_MOUNTS = 32
MAX_CONTAINERS = 32
MAX_EPOCHS = 16  # what later epochs do is added to the last of these
MAX_REASONS = 16
MAX_FIELDS = 64
MAX_MADE = 256
MAX_PATH = 512  # a longer one is left out: cut, it would name another file

Measured = Annotated[int, Meta(ge=-1)]
Name = Annotated[str, Meta(max_length=200)]


class SuffixTotals(Struct, frozen=True, array_like=True):
    """Opens of files with one suffix. Of `sized` of them the size is known: `bytes` in all,
    `max_bytes` the most."""

    opens: Count
    sized: Count
    bytes: Count
    max_bytes: Count


class MountTotals(Struct, frozen=True, array_like=True):
    """Opens on one file system, whose root is `path` and type `type` as the kernel names it."""

    path: Annotated[str, Meta(max_length=MAX_PATH)]
    type: Annotated[str, Meta(max_length=64)]
    opens: Count = 0


class ContainerFile(Struct, frozen=True, array_like=True):
    """A file that holds many samples, seen open or mapped. `kind`: lmdb, hdf5, parquet, arrow, tar,
    zip, npz, npy, memmap or sqlite. `bytes` is its size, None if unknown."""

    path: Annotated[str, Meta(max_length=MAX_PATH)]
    kind: Annotated[str, Meta(max_length=32)]
    bytes: Count | None = None


class EpochTotals(Struct, frozen=True, array_like=True):
    """Sampled fetches of one epoch, summed. -1: not measured here."""

    epoch: Count
    batches: Measured = -1
    samples: Measured = -1
    fetch_ns: Measured = -1
    fetch_cpu_ns: Measured = -1
    opens: Measured = -1
    read_bytes: Measured = -1  # by system calls (rchar)
    read_calls: Measured = -1
    disk_bytes: Measured = -1  # that the storage layer had to bring
    major_faults: Measured = -1


class SampleField(Struct, frozen=True, array_like=True):
    """One field of the samples of a batch, as they were before they were collated. `path` is how
    code reaches it ("[0]", "['image']", "" for a sample that is one value). `kind`: "tensor",
    "tensor subclass", "ndarray", "number", "text", "none", "other", "missing" in some of the
    samples, or "mixed". `alike`: kind, type, dtype and shape are the same in all samples that were
    looked at; what differs is left out."""

    path: Name
    kind: Annotated[str, Meta(max_length=32)] = "other"
    type: Name = ""
    dtype: Annotated[str, Meta(max_length=64)] | None = None
    shape: tuple[Count, ...] | None = None
    alike: bool = True


class SampledFetches(Struct, frozen=True):
    """All processes of one loader together. Paths are cleaned for printing. `samples` are the data
    set's, and their fetch took `fetch_ns` in all. `fields` describe the samples of some batches,
    none if there was no list of samples."""

    batches: Count = 0
    samples: Count = 0
    fetch_ns: Count = 0
    opens: Count = 0
    different: Count = 0  # of the paths of each batch
    distinct: Count = 0  # paths, counted a process
    # Opens of a path the same process had opened before, during a sampled fetch.
    reopened: Count = 0
    directories: Count = 0
    suffixes: Mapping[str, SuffixTotals] = {}
    # The most used directories → opens.
    folders: Annotated[Mapping[str, Count], Meta(max_length=MAX_FOLDERS)] = {}
    mounts: tuple[MountTotals, ...] = ()
    containers: tuple[ContainerFile, ...] = ()
    shared: Count = 0  # of the containers, those that several workers had open and not mapped
    # Open in the training process, and fetching there moves the position: processes forked later
    # share it.
    moved: tuple[str, ...] = ()
    epochs: tuple[EpochTotals, ...] = ()
    fields: Annotated[tuple[SampleField, ...], Meta(max_length=MAX_FIELDS)] = ()
    # Samples of which the indices were asked for before; how many of them were the same again; and
    # the digests (of 32 bits) by which that is known, each after its index.
    again: Count = 0
    same: Count = 0
    made: Annotated[tuple[tuple[int, int], ...], Meta(max_length=MAX_MADE)] = ()
    # What could not be seen, and why.
    reasons: Annotated[Mapping[str, str], Meta(max_length=MAX_REASONS)] = {}


class FetchesFile(SampledFetches, frozen=True):
    """The same of one process, as its file has it."""

    format: int | None = None


def combined_fields(
    fields: tuple[SampleField, ...], others: tuple[SampleField, ...]
) -> tuple[SampleField, ...]:
    """The fields of both descriptions, alike where they are the same in both."""
    if not fields or not others:
        return fields or others
    one, other = ({each.path: each for each in some} for some in (fields, others))
    return tuple(
        _both(*(some.get(path, SampleField(path, "missing")) for some in (one, other)))
        for path in list(one | other)[:MAX_FIELDS]
    )


def _both(one: SampleField, other: SampleField) -> SampleField:
    if one == other:
        return one
    mixed = {"kind": "mixed", "type": "", "dtype": None, "shape": None}
    differ = {each: mixed[each] for each in mixed if getattr(one, each) != getattr(other, each)}
    return replace(one, alike=False, **differ)
