"""Which layout fits a data set of many small files: by where they are, in which order they are
read, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...case.case import Case
from ...schema.evidence import Evidence, count, size
from ...schema.report_model import StorageSummary
from ..loader_code import loader_code
from .packed import packed_code
from .shards import shard_count, shards_code
from .stored import stored_form

# Opens that follow the one before: from here on, files are read in order.
IN_ORDER = 0.7
# Decoded samples may take so many times what the files take, if there is room for them in the page
# cache.
MOST_GROWTH = 4.0

_TRY = (
    "loaderscope probe-storage tries this on a sample of the files before any day is spent "
    "converting."
)
_GAIN = (
    "It gains at most what reading takes now: little on a local NVMe disk, most on a network file "
    "system."
)


@dataclass(frozen=True)
class Layout:
    """A layout for this data set: what to say, and the code that converts and reads."""

    title: str
    why: str
    code: str
    caveat: str
    evidence: Evidence = field(default_factory=dict)
    decoded: bool = False  # saves decoding as well as reading


def chosen(case: Case, storage: StorageSummary, remote: bool) -> Layout:
    """The layout that fits. `remote`: the files are on a network or FUSE file system."""
    in_order = case.meets("stream") or (storage.sequential_share or 0.0) >= IN_ORDER
    return (
        (_shards(case) if remote and in_order else None)
        or _stored(case, storage)
        or Layout(
            title="Pack the files into one",
            why="One large file, read through a memory map, needs no search and no opening.",
            code=packed_code(case) or _by_hand(case),
            caveat=f"{_GAIN} {_TRY}",
        )
    )


def _by_hand(case: Case) -> str:
    """Where the data set lists no files."""
    return (
        "from torch.utils.data import DataLoader\n\n"
        "# Write all files one after another into one, keep where each begins in an array, and "
        "read\n"
        "# mapped[begin:end] of a memory map, opened at first use in each worker, where a file is "
        f"opened now.\n{loader_code(case)}\n"
    )


def _shards(case: Case) -> Layout | None:
    code = shards_code(case)
    if code is None:
        return None
    return Layout(
        title="Pack the files into tar shards",
        why="They are read in order from a network: tar shards are read as one stream each.",
        code=code,
        caveat="Shards are read from end to end: shuffling is of shards and within a buffer only, "
        "the number of batches of an epoch may differ by one a worker, and len(loader) is not "
        f"known. {_TRY}",
        evidence={"shards": count(shard_count(case), "(four or more for each worker and rank)")},
    )


def _stored(case: Case, storage: StorageSummary) -> Layout | None:
    """A memory-mapped array: where decoded samples take little more than the files, and memory
    holds them."""
    form, files, memory = stored_form(case), storage.dataset_bytes, storage.memory_bytes
    if form is None or not files or memory is None:
        return None
    if form.nbytes > min(MOST_GROWTH * files, memory):
        return None
    return Layout(
        title="Store the samples as one memory-mapped array",
        why="All samples have one shape: one array a field, made once, is read through a memory "
        "map, decoded already.",
        code=form.code,
        caveat=f"Every epoch then sees the same values. {_TRY}",
        evidence={"the arrays take": size(form.nbytes), "the files take": size(files)},
        decoded=True,
    )
