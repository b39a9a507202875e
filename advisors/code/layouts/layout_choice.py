"""Which layout fits a data set of many small files, by where they are, in which order they are
read, and what they hold; and the code of those that keep the files as they are.

`PackedFiles` stands in for the list of paths, and its items are open files. Tar shards are read
from end to end: for network file systems, where a stream is fast and a file is slow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...case.case import Case
from ...case.code_text import Source
from ...schema.evidence import Evidence, size
from ...schema.report_model import StorageSummary
from ..loader_code import dataset_class, loader_code
from ..loader_form import form_of
from ..template import code_from
from .place import copied, file_lists
from .stored import stored_form

# Decoded samples may take so many times what the files take, if there is room for them in the page
# cache.
MOST_GROWTH = 4.0

# Each reader (worker of a rank) should have several shards, so that none is left without work at
# the end.
SHARDS_A_READER = 4

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
    in_order = case.meets("stream") or case.config.get("shuffle") is False
    # Orders and choices of the user's own would be lost.
    dealt = str(case.config.get("sampler")).endswith("DistributedSampler")
    return (
        (_shards(case) if remote and in_order and (form_of(case).plain or dealt) else None)
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


def _shards(case: Case) -> Layout:
    readers = max(1, case.num_workers) * (case.process.world_size or 1)
    return Layout(
        title="Pack the files into tar shards",
        why="They are read in order from a network: tar shards are read as one stream each.",
        code=f"# By hand: write the files into {SHARDS_A_READER * readers} tar files (four for "
        "each worker and rank), and\n"
        "# read them from end to end, for example with webdataset: each worker and rank its own "
        "share\n",
        caveat="Shards are read from end to end: shuffling is of shards and within a buffer only, "
        "the number of batches of an epoch may differ by one a worker, and len(loader) is not "
        f"known. {_TRY}",
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


def packed_code(case: Case) -> str | None:
    """Conversion, reading and a loader; None where the data set lists no files."""
    lists = file_lists(case)
    if not lists:
        return None
    first, one = lists[0], len(lists) == 1
    root, lines = first.path.replace("dataset", "packed", 1), copied("packed", first.path)
    for each in lists:
        name = each.name if first.stands_in else "packed_files" if one else f"packed_{each.name}"
        lines += [
            *each.target(f"{'packed' if one else each.name}.bin"),
            "if not target.exists():",
            f"    pack({each.paths}, target)  # once, by one process; delete it when the files "
            "change",
            f"{root}.{name} = PackedFiles({each.code}, target)",
        ]
        if not first.stands_in:
            lines += [
                f"# in {dataset_class(case)}, where self.{each.name}[index] is opened, read the "
                "open file",
                f"# self.{name}[index] instead",
            ]
    lines += [*first.opens_packed(), "", loader_code(case, dataset=Source("packed")), ""]
    return code_from("packed", then="\n".join(lines))
