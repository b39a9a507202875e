"""Containers that are read in a way that costs more than it must: what gives it away, what to do,
what it saves.

Each `Finding` has factors on fetch, (low, high): what is left of it. Costs of opening are CPU time
measured on two cores of a cloud machine (x86-64): a tar archive 19 µs an entry, a zip archive 2.4
µs an entry, an HDF5 file 95 µs, an SQLite file 66 µs, LMDB 52 µs, Parquet 80 µs and more with many
row groups, a plain file 6 to 12 µs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...case.case import Case
from ...case.fetching import names_used, sample_bytes, sample_time_us
from ...schema.evidence import Evidence, Figure, figure, percent, size, us
from ...schema.report_model import StorageSummary
from ...storage.files import SUFFIXES, few_files, length_of, main_suffix
from .containers import readahead_code, readahead_hint, rechunk_code, regroup_code
from .kept import Opener, kept_code, opener_of
from .stored import stored_form

# Read at least so many times what a sample uses: docs/causes.md, "LMDB read-ahead" and "HDF5 and
# Zarr chunks".
OVER_READ = 4.0
READ_AHEAD = 3.0
# Less than this a sample is no matter of storage, however many times what is used.
LEAST_OVER_READ_BYTES = 64e3
# Used bytes a µs below which fetching from an array file does far more than copy (a copy runs at
# thousands).
LEAST_USED_BYTES_PER_US = 5.0
LEAST_SAMPLE_US = 300.0
LEAST_OPENS = 0.5
# Fewer samples of the stacks say nothing: at 30, a share is right within 18 %.
LEAST_STACKS = 30

# Reading one entry of an open zip archive: its own cost, and bytes decompressed a µs.
MEMBER_US, INFLATED_BYTES_PER_US = 100.0, 100.0

_OPEN_US = {
    "hdf5": (60.0, 1000.0),
    "sqlite": (50.0, 200.0),
    "lmdb": (40.0, 200.0),
    "parquet": (60.0, 1000.0),
    "file": (5.0, 20.0),
}
_ENTRY_US = {"tar": (9.0, 25.0), "zip": (1.5, 5.0)}
_NAMES = {
    "hdf5": "HDF5 file",
    "sqlite": "SQLite file",
    "lmdb": "LMDB file",
    "parquet": "Parquet file",
    "tar": "tar archive",
    "zip": "zip archive",
    "file": "file",
}
_LIBRARIES = {"hdf5": "h5py", "parquet": "pyarrow", "tar": "tarfile", "zip": "zipfile"}
_ROW_GROUPS = frozenset(
    {"read_row_group", "read_row_groups", "read_table", "ParquetFile", "ParquetDataset"}
)


@dataclass(frozen=True)
class Finding:
    """What is wrong with how a container is read. `left`: factors on fetch, (low, high)."""

    title: str
    why: str
    evidence: Evidence
    left: tuple[float, float]
    code: str
    caveat: str


def findings(case: Case, storage: StorageSummary) -> Iterator[Finding]:
    """What is wrong with how containers are read, the costliest first."""
    for found in (
        _reopened(case, storage),
        _archive(case, storage),
        _chunks(case, storage),
        _row_groups(case, storage),
        _readahead(case, storage),
    ):
        if found is not None:
            yield found


def _reopened(case: Case, storage: StorageSummary) -> Finding | None:
    """docs/causes.md, "Files opened again and again"."""
    sample_us = sample_time_us(case)
    parts = case.inspection.parts
    opener: Opener | None = None
    kind: str | None = None
    evidence: dict[str, Figure | str | None] = {}
    if few_files(case.loader) and (storage.opens_per_sample or 0.0) >= LEAST_OPENS:
        kind = SUFFIXES.get(main_suffix(case.loader.looks) or "", None)
        kind = "file" if kind in (None, "lines", "records", "npy", "npz", "arrow") else kind
        opener = next(
            (o for part in parts if (o := opener_of(part, surely=False)) is not None), None
        )
        if opener is None and kind == "file":
            return (
                None  # few files in a data set that repeats them, opened in a way that is not known
            )
        evidence["opened a sample"] = figure(storage.opens_per_sample or 0.0, "files")
        evidence["of them opened before"] = percent(storage.reopened_share or 0.0)
    else:
        opener = next((o for part in parts if (o := opener_of(part)) is not None), None)
        if opener is None or opener.kind == "file":
            return None
        evidence["opened for each sample"] = f"{opener.text}, seen in the source"
    kind = opener.kind if opener is not None and opener.kind != "file" else kind or "file"
    if sample_us is None:
        return None
    low, high = _opening_us(case, kind)
    busy_us = sample_us * (1 - _core_wait(case))  # the costs are CPU time
    left = (max(0.02, 1 - high / busy_us), max(0.1, 1 - low / busy_us))
    seen = _library_share(case, _LIBRARIES.get(kind, ""))
    if kind == "tar":  # all that it does beside reading one entry is opening
        evidence["in tarfile"] = percent(seen) if seen is not None else "not sampled"
        left = (
            (0.02, left[1])
            if seen is None
            else (max(0.02, 1 - 1.2 * seen), max(0.05, 1 - 0.8 * seen))
        )
    elif seen is not None:
        left = (min(left[0], max(0.02, 1 - seen)), left[1])
        if kind == "zip":  # what stays in zipfile is reading one entry
            stays = (MEMBER_US + (sample_bytes(case) or 0.0) / INFLATED_BYTES_PER_US) / busy_us
            left = (left[0], max(left[0], min(left[1], 1 - seen + stays)))
    name = _NAMES.get(kind, "file")
    return Finding(
        title=f"Open the {name} once in each worker, not for each sample",
        why=(
            f"Each sample opens the same {name} again: {us(low)} to {us(high)} of the "
            f"{us(sample_us)} a sample takes. A handle that is opened at first use and kept costs "
            "that once."
        ),
        evidence={**evidence, "fetch a sample": us(sample_us)},
        left=left,
        code=kept_code(case, opener if opener_of(case.dataset, surely=False) == opener else None),
        caveat="Open it in the worker, never in __init__: a handle shared by forked workers gives "
        "corrupt data.",
    )


def _core_wait(case: Case) -> float:
    """Of fetch, the part that waits for a core."""
    waiting = case.report.waiting
    return min(0.95, (waiting.fetch_core_wait_share or 0.0) if waiting is not None else 0.0)


def _opening_us(case: Case, kind: str) -> tuple[float, float]:
    if kind not in _ENTRY_US:
        return _OPEN_US.get(kind, _OPEN_US["file"])
    entries = float(length_of(case.loader) or 1)
    files = max(
        1, sum(c.kind == kind for c in case.report.storage.containers) if case.report.storage else 1
    )
    low, high = _ENTRY_US[kind]
    return low * entries / files, high * entries / files


def _archive(case: Case, storage: StorageSummary) -> Finding | None:
    """docs/causes.md, "Compressed archives": one a sample."""
    if main_suffix(case.loader.looks) != ".npz" or (storage.opens_per_sample or 0.0) < LEAST_OPENS:
        return None
    form, sample_us = stored_form(case), sample_time_us(case)
    if isinstance(form, str) or sample_us is None or few_files(case.loader):
        return None
    used = sample_bytes(case) or 0.0
    evidence: Evidence = {
        "fetch a sample": us(sample_us),
        "decoding": percent(storage.decoding_share or 0.0),
        "read a sample": size(storage.read_bytes_per_sample),
    }
    return Finding(
        title="Store the .npz archives as memory-mapped arrays",
        why=(
            "Each sample opens an .npz archive, reads it and decompresses it as a whole. The same "
            f"samples in one .npy file a field ({size(form.nbytes)} in all) are only read."
        ),
        evidence={**evidence, "used of it": size(used)},
        left=_stored_left(used, sample_us),
        code=form.code,
        caveat=_stored_caveat(storage, form.nbytes),
    )


def _chunks(case: Case, storage: StorageSummary) -> Finding | None:
    """docs/causes.md, "HDF5 and Zarr chunks"."""
    over = _over_read(case, storage, "hdf5")
    if over is None:
        return None
    times_, evidence = over
    code = rechunk_code(case)
    if code is None:
        form = stored_form(case)
        if isinstance(form, str):
            return None
        code = form.code
    return Finding(
        title="Write the HDF5 file with chunks of what one access reads",
        why=(
            "A chunk is read and decompressed as a whole, whatever is used of it; one larger than "
            f"the chunk cache is read again for the next sample. {times_}"
        ),
        evidence=evidence,
        left=_over_left(evidence),
        code=code,
        caveat="Chunks of one row make the file larger and reading all of it slower. A larger "
        "cache (h5py.File(path, rdcc_nbytes=…), at least a few chunks) helps where neighbouring "
        "rows are read together.",
    )


def _row_groups(case: Case, storage: StorageSummary) -> Finding | None:
    """docs/causes.md, "Parquet, rows at random"."""
    over = _over_read(case, storage, "parquet")
    if over is None or not names_used(case) & _ROW_GROUPS:
        return None
    times_, evidence = over
    form = stored_form(case)
    sample_us, used = sample_time_us(case) or 1.0, sample_bytes(case) or 0.0
    if isinstance(form, str):
        code, left = regroup_code(case, rows=64), _over_left(evidence)
        if code is None:
            return None
        title, caveat = (
            "Write the Parquet file with small row groups",
            "Small groups make reading all of it slower.",
        )
    else:
        code, left = form.code, _stored_left(used, sample_us)
        title = "Read rows from a memory-mapped array, not from Parquet row groups"
        caveat = _stored_caveat(storage, form.nbytes)
    return Finding(
        title=title,
        why="A Parquet row group is read and decoded as a whole for each row that is asked for. "
        f"{times_}",
        evidence=evidence,
        left=left,
        code=code,
        caveat=caveat,
    )


def _readahead(case: Case, storage: StorageSummary) -> Finding | None:
    """docs/causes.md, "LMDB read-ahead". Where reading ahead is of use, it is left alone."""
    files = [c for c in storage.containers if c.kind == "lmdb"]
    length, disk = length_of(case.loader), storage.disk_bytes_per_sample
    if (
        not files
        or not length
        or disk is None
        or any(m.kind in ("network", "fuse") for m in storage.mounts)
    ):
        return None
    stored = sum(c.bytes or 0 for c in files) / length or sample_bytes(case)
    reading = storage.reading_share or 0.0
    if not stored or disk < READ_AHEAD * stored or disk < 4096 or not reading:
        return None
    code = readahead_code(case)
    return Finding(
        title="Open the LMDB file without reading ahead",
        why=(
            f"Random reads bring {figure(disk / stored)} times the bytes of a sample from the "
            "disk: the kernel reads ahead what is not asked for, and throws out what would have "
            "been."
        ),
        evidence={
            "from the disk a sample": size(disk),
            "stored a sample": size(stored),
            "reading": percent(reading),
        },
        left=(1 - reading * (1 - stored / disk), 1 - 0.2 * reading),
        code=code or readahead_hint(case),
        caveat="On NFS and Lustre readahead=True is faster.",
    )


def _over_read(case: Case, storage: StorageSummary, kind: str) -> tuple[str, Evidence] | None:
    """Whether far more of containers of this kind is read or decoded than a sample uses: (sentence,
    evidence)."""
    used, sample_us, read = sample_bytes(case), sample_time_us(case), storage.read_bytes_per_sample
    if not any(c.kind == kind for c in storage.containers) or not used or sample_us is None:
        return None
    evidence: Evidence = {"used a sample": size(used), "fetch a sample": us(sample_us)}
    if read is not None and read >= OVER_READ * used and read >= LEAST_OVER_READ_BYTES:
        evidence = {"read a sample": size(read), **evidence, "read ÷ used": figure(read / used)}
        return f"{size(read)} are read for {size(used)} that are used.", evidence
    if (
        sample_us >= LEAST_SAMPLE_US
        and used / sample_us < LEAST_USED_BYTES_PER_US
        and _by_library(case, kind)
    ):
        return f"{size(used)} take {us(sample_us)}.", evidence
    return None


def _by_library(case: Case, kind: str) -> bool:
    """Whether stacks show that the container's library takes the time."""
    return (_library_share(case, _LIBRARIES[kind]) or 0.0) >= 0.5


def _library_share(case: Case, library: str) -> float | None:
    """Of fetch, the part in which code of this library was running, by stacks; None without enough
    of them."""
    code = case.report.code
    fetch = code.stages.get("fetch") if code is not None else None
    if fetch is None or fetch.samples < LEAST_STACKS or not library:
        return None
    return fetch.libraries.get(library, 0.0)


def _over_left(evidence: Evidence) -> tuple[float, float]:
    return (0.04, 0.6) if "read ÷ used" in evidence else (0.05, 0.8)


def _stored_left(used: float, sample_us: float) -> tuple[float, float]:
    """A row of a memory map costs 15 to 40 µs and its copy, at 5 to 1 GB a second."""
    return min(0.9, (15 + used / 5e3) / sample_us), min(1.0, (40 + used / 1e3) / sample_us)


def _stored_caveat(storage: StorageSummary, nbytes: float) -> str:
    told = f"The arrays take {size(nbytes)}"
    if storage.dataset_bytes:
        told += f", where the data set takes {size(storage.dataset_bytes)} now"
    if storage.memory_bytes is not None and nbytes > storage.memory_bytes:
        return (
            f"{told}: more than the page cache can hold ({size(storage.memory_bytes)}), so they "
            "are read from the disk."
        )
    return f"{told}. Every epoch then sees the same values."
