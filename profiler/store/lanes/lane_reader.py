"""Reading lanes: whole records only, whatever state the files are in."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import RunUnreadable
from ...base.plausible import believed, limit
from ...base.schema import MAX_CORES
from .compacted import BINS, Compacted, Totals, compacted_path
from .segment_file import FORMAT_VERSION, HEADER, HEADER_BYTES, MAGIC, SCHEMA_OFFSET

# NumPy types of the struct codes a schema may use.
TYPES: dict[str, np.dtype[Any]] = {
    "q": np.dtype("<i8"),
    "i": np.dtype("<i4"),
    "h": np.dtype("<i2"),
    "f": np.dtype("<f4"),
}

# A record is at most this large: a bound against absurd headers, far above MAX_CORES floats.
MAX_RECORD_BYTES = 1 << 16
# A segment is at most this large, and no lane gets beyond this record: bounds against corrupt
# headers.
MAX_SEGMENT_BYTES = 64 << 20
MAX_SEQ = 1 << 62
# Nor are its totals, some hundred numbers a column, this large.
MAX_COMPACTED_BYTES = 16 << 20


@dataclass(frozen=True)
class SegmentInfo:
    """A segment's header, checked."""

    path: Path
    schema: str
    version: int
    dtype: np.dtype[Any]
    capacity: int
    first_seq: int
    committed: int
    disbelieved: int = 0  # values that cannot be, among those read


def read_header(path: Path) -> SegmentInfo:
    """Raises RunUnreadable, with the file's name, for anything but a segment of this format
    version."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO would wait for ever
            raise RunUnreadable(f"{path} is not a file")
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise RunUnreadable(f"{path} cannot be read: {error.strerror}") from error
    if len(header) < HEADER_BYTES:
        raise RunUnreadable(
            f"{path} is cut short: its header has {len(header)} of {HEADER_BYTES} bytes"
        )
    magic, version, header_bytes, record_bytes, capacity, first_seq, committed, length = (
        HEADER.unpack_from(header)
    )
    if magic != MAGIC:
        raise RunUnreadable(f"{path} is not a Loaderscope lane")
    if version != FORMAT_VERSION:
        newer = (
            "a newer Loaderscope: upgrade to read it"
            if version > FORMAT_VERSION
            else "an unknown Loaderscope"
        )
        raise RunUnreadable(f"{path} has format version {version}, written by {newer}")
    sane = (
        header_bytes == HEADER_BYTES
        and 0 < record_bytes <= MAX_RECORD_BYTES
        and length <= HEADER_BYTES
    )
    if not sane or capacity * record_bytes > MAX_SEGMENT_BYTES or not 0 < first_seq < MAX_SEQ:
        raise RunUnreadable(f"{path} is corrupt: its header makes no sense")
    try:
        name, schema_version, fields = json.loads(header[SCHEMA_OFFSET : SCHEMA_OFFSET + length])
        dtype = _dtype(fields, record_bytes)
        known = isinstance(name, str) and isinstance(schema_version, int)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise RunUnreadable(f"{path} is corrupt: its schema makes no sense") from error
    if not known or "seq" not in (dtype.names or ()) or dtype["seq"] != np.dtype("<i8"):
        raise RunUnreadable(f"{path} is corrupt: its schema makes no sense")
    committed = min(committed, capacity, (size - HEADER_BYTES) // record_bytes)
    return SegmentInfo(path, name, schema_version, dtype, capacity, first_seq, committed)


def _dtype(fields: Any, record_bytes: int) -> np.dtype[Any]:
    names, formats, offsets = [], [], []
    for name, code, count, offset in fields:
        base = TYPES[code]
        if not (
            isinstance(name, str)
            and name.isidentifier()
            and isinstance(count, int)
            and isinstance(offset, int)
        ):
            raise ValueError("field")
        if count < 1 or offset < 0 or offset + base.itemsize * count > record_bytes:
            raise ValueError("field outside the record")
        names.append(name)
        formats.append((base, (count,)) if count > 1 else base)
        offsets.append(offset)
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": record_bytes}
    )


def read_segment(path: Path) -> tuple[npt.NDArray[Any], SegmentInfo]:
    """The committed records, and the header. The file is read, not mapped: no bus error, no race.

    Raises RunUnreadable for a file that is no segment. A segment cut short, or one whose last
    records did not reach the disk, gives the whole records it has. Values that cannot be are given
    as not measured.
    """
    info = read_header(path)
    size = info.dtype.itemsize
    try:
        with path.open("rb") as file:
            file.seek(HEADER_BYTES)
            data = file.read(info.committed * size)
    except OSError as error:
        raise RunUnreadable(f"{path} cannot be read: {error.strerror}") from error
    records = np.frombuffer(data, dtype=info.dtype, count=len(data) // size)
    # A record's own number is written with it: after a power failure a page of zeros must not pass
    # for a record.
    expected = np.arange(info.first_seq, info.first_seq + len(records), dtype=np.uint64).astype(
        np.int64
    )
    wrong = np.flatnonzero(records["seq"] != expected)
    records, disbelieved = believed(records[: wrong[0]] if len(wrong) else records)
    return records, replace(info, disbelieved=disbelieved)


def batch_lanes(names: Iterable[str], index: int) -> list[str]:
    """The lanes of batches of a process's loader of this number, whole or compacted, among the
    files of its folder."""
    pattern = re.compile(rf"(batches{index}x\d{{1,9}})(?:-\d+\.seg|\.fold\.json)")
    return sorted({match[1] for name in names if (match := pattern.fullmatch(name))})


def segments(directory: Path, name: str) -> list[Path]:
    """The lane's segment files, oldest first."""
    return sorted(
        path for path in directory.glob(f"{name}-*.seg") if path.stem[len(name) + 1 :].isdigit()
    )


def read_compacted(directory: Path, name: str) -> Compacted:
    """What was compacted of this lane; empty if nothing was. Raises RunUnreadable."""
    path = compacted_path(directory, name)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_COMPACTED_BYTES:
            raise RunUnreadable(f"{path} is corrupt")
        compacted = Compacted.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Compacted()
    except OSError as error:
        raise RunUnreadable(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise RunUnreadable(f"{path} is corrupt: {error}") from error
    if not _sane(compacted):
        raise RunUnreadable(f"{path} is corrupt: its numbers make no sense")
    return compacted


def _sane(compacted: Compacted) -> bool:
    if not (
        0 <= compacted.through_seq < MAX_SEQ and 0 <= compacted.records <= compacted.through_seq
    ):
        return False
    if not -1 <= compacted.t_first_ns <= max(compacted.t_last_ns, -1) <= (limit("t_ns") or 0):
        return False
    return all(
        _sane_totals(name, totals, compacted.records) for name, totals in compacted.columns.items()
    )


def _sane_totals(name: str, totals: Totals, records: int) -> bool:
    total: object = totals.total  # JSON may have put anything there
    if isinstance(total, bool) or not isinstance(total, int | float):
        return False
    most = limit(name) or MAX_SEQ
    if not 0 <= totals.low <= totals.high <= most or not 0 < totals.count <= records * MAX_CORES:
        return False
    slack = 1e-6 * totals.high * totals.count  # a sum of floats is not exact
    if not totals.count * totals.low - slack <= total <= totals.count * totals.high + slack:
        return False
    if any(not 0 <= key < BINS or count < 0 for key, count in totals.bins.items()):
        return False
    return sum(totals.bins.values()) == totals.count
