"""Containers that are read in a way that costs more than it must: what gives it away, what to do,
what it saves.

Predictions rest on factors on fetch, (low, high): what is left of it. Costs of opening are CPU time
measured on two cores of a cloud machine (x86-64): a tar archive 19 µs an entry, a zip archive 2.4
µs an entry, an HDF5 file 95 µs, an SQLite file 66 µs, LMDB 52 µs, Parquet 80 µs and more with many
row groups, a plain file 6 to 12 µs.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...case.advice import Advice
from ...case.case import Case
from ...case.fetching import (
    MAIN_PART,
    core_wait_share,
    names_used,
    sample_bytes,
    sample_time_us,
)
from ...schema.evidence import Evidence, figure, percent, size, us
from ...schema.report_model import StorageSummary
from ...storage.files import SUFFIXES, few_files, length_of, main_suffix, opens_of_a_file
from .kept import kept_code, opener_of

# Read at least so many times what a sample uses: docs/causes.md, "HDF5 and Zarr chunks".
OVER_READ = 4.0
# Less than this a sample is no matter of storage, however many times what is used.
LEAST_OVER_READ_BYTES = 64e3
SIEVE = 1 << 16
# Used bytes a µs below which fetching from an array file does far more than copy (a copy runs at
# thousands).
LEAST_USED_BYTES_PER_US = 5.0
LEAST_SAMPLE_US = 300.0
LEAST_OPENS = 0.5
# Fewer samples of the stacks say nothing: at 30, a share is right within 18 %.
LEAST_STACKS = 30


class _Container(NamedTuple):
    """`open_us` is what opening one costs, at least and at most; `an_entry`: for each entry."""

    name: str
    open_us: tuple[float, float]
    library: str = ""
    an_entry: bool = False


_CONTAINERS = {
    "hdf5": _Container("HDF5 file", (60.0, 1000.0), "h5py"),
    "sqlite": _Container("SQLite file", (50.0, 200.0)),
    "lmdb": _Container("LMDB file", (40.0, 200.0)),
    "parquet": _Container("Parquet file", (60.0, 1000.0), "pyarrow"),
    "tar": _Container("tar archive", (9.0, 25.0), "tarfile", an_entry=True),
    "zip": _Container("zip archive", (1.5, 5.0), "zipfile", an_entry=True),
    "file": _Container("file", (5.0, 20.0)),
}
_ROW_GROUPS = frozenset(
    {"read_row_group", "read_row_groups", "read_table", "ParquetFile", "ParquetDataset"}
)
_RECHUNK = """\
# By hand: write the file once with a row a chunk, and read the new one
#     with h5py.File(path) as old, h5py.File(target, "w") as new:
#         rows = old[name]
#         new.create_dataset(name, data=rows, chunks=(1, *rows.shape[1:]))
"""
_REGROUP = """\
# By hand: write the file once in small groups, and read the new one
#     pq.write_table(pq.read_table(path), target, row_group_size=64)
"""

_ONCE_EACH = """\
# By hand: read all files once before training, and keep what samples use of them in one array
# (np.save, then np.load(path, mmap_mode="r")); or keep the last ones (functools.lru_cache) in each
# worker, and draw the samples of a file together
"""
# From here on, reading a file for each of its samples is worth a step.
OFTEN = 3.0
_READS = re.compile(r"(?:open|load|read|from_?file)\w*\(")


def findings(case: Case, storage: StorageSummary) -> Iterator[Advice]:
    """What to change in how containers are read, the costliest first."""
    finders = (_reopened, _repeated, _chunks, _row_groups)
    yield from filter(None, (find(case, storage) for find in finders))


def _reopened(case: Case, storage: StorageSummary) -> Advice | None:
    """docs/causes.md, "Files opened again and again"."""
    sample_us, opens = sample_time_us(case), storage.opens_per_sample or 0.0
    counted = few_files(case.loader) and opens >= LEAST_OPENS
    openers = (opener_of(part, surely=not counted) for part in case.inspection.parts)
    opener = next(filter(None, openers), None)
    kind = opener.kind if opener is not None else "file"
    if kind == "file" and counted:
        kind = SUFFIXES.get(main_suffix(case.loader.looks) or "", kind)
        kind = kind if kind in _CONTAINERS else "file"
    # A file that holds no container may be opened again on purpose.
    if sample_us is None or (kind == "file" and (opener is None or not counted)):
        return None
    container = _CONTAINERS[kind]
    evidence: Evidence = {
        "opened a sample": figure(opens, "files"),
        "of them opened before": percent(storage.reopened_share or 0.0),
    }
    if opener is not None and not counted:
        evidence = {"opened for each sample": f"{opener.text}, seen in the source"}
    of_kind = sum(each.kind == kind for each in storage.containers)
    entries = (length_of(case.loader) or 1) / max(1, of_kind) if container.an_entry else 1.0
    low, high = (each * entries for each in container.open_us)
    busy_us = sample_us * (1 - min(0.95, core_wait_share(case)))  # the costs are CPU time
    best, worst = max(0.02, 1 - high / busy_us), max(0.1, 1 - low / busy_us)
    seen = _library_share(case, container.library)
    if container.an_entry and seen is not None:  # nearly all that it does is opening
        best, worst = max(0.02, 1 - 1.2 * seen), max(0.05, 1 - 0.8 * seen)
    elif seen is not None:
        best = min(best, max(0.02, 1 - seen))
    return case.change(code=kept_code(case, opener), fetch=(best, worst)).advise(
        f"Open the {container.name} once in each worker, not for each sample",
        f"Each sample opens the same {container.name} again: {us(low)} to {us(high)} of the "
        f"{us(sample_us)} a sample takes. A handle that is opened at first use and kept costs "
        "that once.",
        {**evidence, "fetch a sample": us(sample_us)},
        caveat="Open it in the worker, never in __init__: a handle shared by forked workers gives "
        "corrupt data.",
        effort="a few lines",
    )


def _repeated(case: Case, storage: StorageSummary) -> Advice | None:
    """Of files that each are opened for several samples."""
    times, stage = opens_of_a_file(case.loader), case.code_stage("fetch")
    if times is None or times < OFTEN or stage is None:
        return None
    reads = (each.total_share for each in stage.lines if _READS.search(each.text or ""))
    if (share := max(reads, default=0.0)) < MAIN_PART:
        return None
    opened = figure(storage.opens_per_sample or 0.0, "files")
    return case.change(code=_ONCE_EACH, fetch=(1 / times, 1 - share / 2)).advise(
        "Read each file once, not for each of its samples",
        f"Each sample opens {opened}, and an epoch opens each file about {times:.0f} times.",
        {"opened a sample": opened},
        effort="a few lines",
    )


def _chunks(case: Case, storage: StorageSummary) -> Advice | None:
    """docs/causes.md, "HDF5 and Zarr chunks"."""
    return _over_read(
        case,
        storage,
        "hdf5",
        _RECHUNK,
        "Write the HDF5 file with chunks of what one access reads",
        "A chunk is read and decompressed as a whole, whatever is used of it; one larger than "
        "the chunk cache is read again for the next sample.",
        "Chunks of one row make the file larger and reading all of it slower. A larger "
        "cache (h5py.File(path, rdcc_nbytes=…), at least a few chunks) helps where neighbouring "
        "rows are read together.",
    )


def _row_groups(case: Case, storage: StorageSummary) -> Advice | None:
    """docs/causes.md, "Parquet, rows at random"."""
    if not names_used(case) & _ROW_GROUPS:
        return None
    return _over_read(
        case,
        storage,
        "parquet",
        _REGROUP,
        "Write the Parquet file with small row groups",
        "A Parquet row group is read and decoded as a whole for each row that is asked for.",
        "Small groups make reading all of it slower. Where memory holds the columns, "
        "reading them once into arrays is faster still.",
    )


def _over_read(
    case: Case, storage: StorageSummary, kind: str, code: str, title: str, why: str, caveat: str
) -> Advice | None:
    """If far more of containers of this kind is read or decoded than a sample uses."""
    used, sample_us, read = sample_bytes(case), sample_time_us(case), storage.read_bytes_per_sample
    if not any(c.kind == kind for c in storage.containers) or not used or sample_us is None:
        return None
    evidence: Evidence = {"used a sample": size(used), "fetch a sample": us(sample_us)}
    # HDF5 reads what is in no chunks in full, rows that are smaller by so much at a time.
    a_call = (read or 0.0) / (storage.read_calls_per_sample or 1.0)
    whole = kind == "hdf5" and abs(a_call / SIEVE - 1) < 0.05
    slow = sample_us >= max(LEAST_SAMPLE_US, used / LEAST_USED_BYTES_PER_US)
    slow &= (_library_share(case, _CONTAINERS[kind].library) or 0.0) >= 0.5
    chunked = kind != "hdf5" or 0 < (read or 0.0) < used
    if read is not None and not whole and read >= max(OVER_READ * used, LEAST_OVER_READ_BYTES):
        evidence = {"read a sample": size(read), **evidence, "read ÷ used": figure(read / used)}
        why, left = f"{why} {size(read)} are read for {size(used)} that are used.", (0.04, 0.6)
    elif slow and chunked:
        why, left = f"{why} {size(used)} take {us(sample_us)}.", (0.05, 0.8)
    else:
        return None
    return case.change(code=code, fetch=left).advise(title, why, evidence, caveat=caveat)


def _library_share(case: Case, library: str) -> float | None:
    """The part of fetch in which code of this library runs, by stacks; None without enough of
    them."""
    fetch = case.code_stage("fetch")
    if fetch is None or fetch.samples < LEAST_STACKS or not library:
        return None
    return fetch.libraries.get(library, 0.0)
