"""Reading the files of lanes: whole records only, whatever state the files are in."""

from __future__ import annotations

import json
import stat
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.errors import RunUnreadable
from ...base.metadata import clean
from ...base.plausible import believed
from ...base.schema import Schema
from .segment_file import FORMAT_VERSION, HEADER, HEADER_BYTES, MAGIC, SCHEMA_OFFSET, segment_number

# NumPy types of the struct codes a schema may use.
TYPES: dict[str, np.dtype[Any]] = {
    "q": np.dtype("<i8"),
    "i": np.dtype("<i4"),
    "h": np.dtype("<i2"),
    "f": np.dtype("<f4"),
}

# A record is at most this large: a bound against absurd headers, far above what lanes have.
MAX_RECORD_BYTES = 1 << 16
MAX_SEGMENT_BYTES = 64 << 20
MAX_SEQ = 1 << 62  # no lane gets beyond this record


def read_segment(path: Path, schema: Schema | None = None) -> tuple[Array, int, int]:
    """The whole records that a segment counts, the number of the first, and how many of their
    values are impossible: those are given as not measured. The file is read, not mapped: no bus
    error, no race.

    Raises RunUnreadable, with the file's name, for anything but a segment of this format version,
    which holds records of this schema as this version knows them.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO would wait for ever
            raise RunUnreadable(f"{clean(path)} is not a file")
        with path.open("rb", buffering=0) as file:
            dtype, first_seq, committed = _checked(file.read(HEADER_BYTES), path, schema)
            data = file.read(committed * dtype.itemsize)
    except OSError as error:
        raise RunUnreadable(f"{clean(path)} cannot be read: {error.strerror}") from error
    records = np.frombuffer(data, dtype=dtype, count=len(data) // dtype.itemsize)
    # A record's own number is written with it: after a power failure a page of zeros must not pass
    # for a record.
    wrong = np.flatnonzero(records["seq"] != np.arange(first_seq, first_seq + len(records)))
    whole, impossible = believed(records[: wrong[0]] if len(wrong) else records)
    return whole, first_seq, impossible


def _checked(header: bytes, path: Path, schema: Schema | None) -> tuple[np.dtype[Any], int, int]:
    """A record as a dtype, the number of the first one, and the count."""
    shown = clean(path)
    if len(header) < HEADER_BYTES:
        had = f"its header has {len(header)} of {HEADER_BYTES} bytes"
        raise RunUnreadable(f"{shown} is cut short: {had}")
    magic, version, header_bytes, record_bytes, capacity, first_seq, committed, length = (
        HEADER.unpack_from(header)
    )
    if magic != MAGIC:
        raise RunUnreadable(f"{shown} is not a Loaderscope lane")
    if version != FORMAT_VERSION:
        raise RunUnreadable(f"{shown} was written by another version of Loaderscope")
    if (
        (header_bytes != HEADER_BYTES or length > HEADER_BYTES)
        or not 0 < record_bytes <= MAX_RECORD_BYTES
        or capacity * record_bytes > MAX_SEGMENT_BYTES
        or not 0 < first_seq < MAX_SEQ
        # Before it came full segments, as many as its number says, or fewer.
        or first_seq - 1 > segment_number(path) * (MAX_SEGMENT_BYTES // record_bytes)
    ):
        raise RunUnreadable(f"{shown} is corrupt: its header makes no sense")
    try:
        described = header[SCHEMA_OFFSET : SCHEMA_OFFSET + length]
        name, schema_version, dtype = _described(described, record_bytes)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise RunUnreadable(f"{shown} is corrupt: its schema makes no sense") from error
    if schema is not None and name != schema.name:
        raise RunUnreadable(f"{shown} does not hold {schema.name} records")
    if schema is not None and schema_version > schema.version:
        raise RunUnreadable(f"{shown} was written by a newer Loaderscope: upgrade to read it")
    return dtype, first_seq, min(committed, capacity)


@lru_cache(maxsize=64)  # the same in all segments of a lane
def _described(data: bytes, record_bytes: int) -> tuple[str, int, np.dtype[Any]]:
    """Name and version of a schema, and its record as a dtype. Raises what nonsense brings
    about."""
    schema, version, fields = json.loads(data)
    names, formats, offsets = [], [], []
    for name, code, count, offset in fields:
        base = TYPES[code]
        if not (
            (isinstance(name, str) and name.isidentifier())
            and (isinstance(count, int) and count >= 1)
            and (isinstance(offset, int) and offset >= 0)
            and offset + base.itemsize * count <= record_bytes
        ):
            raise ValueError("no field, or one outside the record")
        names.append(name)
        formats.append((base, (count,)) if count > 1 else base)
        offsets.append(offset)
    dtype = np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": record_bytes}
    )
    if not isinstance(schema, str) or not isinstance(version, int) or dtype["seq"] != TYPES["q"]:
        raise ValueError("no schema")
    return schema, version, dtype
