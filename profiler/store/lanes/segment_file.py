"""A lane's files: `NAME-000000.seg`, `NAME-000001.seg`, … They are written by `pwrite` alone, so a
file that is truncated causes an error, never a bus error, on any file system.

Each has a 4,096-byte header (magic, format version, record size, capacity, number of the first
record, count of committed records, the schema as JSON) and then its records. Records are written
first and counted after, so a reader that reads the count and then the records sees whole records
only.
"""

from __future__ import annotations

import errno
import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ...base.schema import Schema

MAGIC = b"LDRSCOPE"
FORMAT_VERSION = 1
HEADER_BYTES = 4096
# magic, format version, header bytes, record bytes, capacity, first seq, committed, length of the
# schema JSON
HEADER = struct.Struct("<8sIIIIQQI")
COMMITTED_OFFSET = 32
SCHEMA_OFFSET = 64

_BATCHES = re.compile(r"(batches(\d{1,9})x\d{1,9})-\d+\.seg")

Bytes = bytes | bytearray | memoryview


class SegmentFile(NamedTuple):
    """One file of a lane. The first write makes it."""

    path: str
    schema: Schema
    capacity: int
    first_seq: int

    def _header(self, committed: int) -> bytes:
        """Raises ValueError for a schema that would run into the records."""
        kind, described = self.schema, self.schema.described
        if SCHEMA_OFFSET + len(described) > HEADER_BYTES:
            raise ValueError(f"the schema of lane {kind.name!r} does not fit the header")
        head = HEADER.pack(
            MAGIC,
            FORMAT_VERSION,
            HEADER_BYTES,
            kind.size,
            self.capacity,
            self.first_seq,
            committed,
            len(described),
        )
        return (head.ljust(SCHEMA_OFFSET, b"\0") + described).ljust(HEADER_BYTES, b"\0")

    def write(self, position: int, records: Bytes, committed: int, only_more: bool = False) -> None:
        """Bring these records, the first of which is number `position` of the file, and then the
        count; with `only_more`, unless the file counts as many already. The header is written
        whole: it heals a file cut short. A file without one has no records for readers, so two
        processes may make it at the same moment.

        Raises OSError: FileNotFoundError where a file that had records is gone.
        """
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | (0 if position else os.O_CREAT), 0o600)
        try:
            write_all(fd, records, HEADER_BYTES + position * self.schema.size)
            if not only_more or _counted(fd) < committed:
                write_all(fd, self._header(committed), 0)
        finally:
            os.close(fd)

    def patch(self, patches: Iterable[tuple[int, bytes]]) -> None:
        """Replace bytes at these offsets of the file. Raises OSError."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for offset, data in patches:
                write_all(fd, data, offset)
        finally:
            os.close(fd)


def _counted(fd: int) -> int:
    """How many records the file counts; 0 for one that was cut short. Raises OSError."""
    found = os.pread(fd, 8, COMMITTED_OFFSET)
    return int.from_bytes(found, "little") if len(found) == 8 else 0


def write_all(fd: int, data: Bytes, at: int) -> None:
    """Raises OSError, also where only a part could be written."""
    wanted = len(data)
    if wanted and os.pwrite(fd, data, at) != wanted:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def segment_path(directory: Any, name: str, number: int) -> str:
    return os.path.join(os.fspath(directory), f"{name}-{number:06d}.seg")


def segment_number(path: Path) -> int:
    """12 of NAME-000012.seg."""
    return int(path.stem.rpartition("-")[2])


def segments(directory: Path, name: str) -> list[Path]:
    """The lane's segment files, oldest first; none where the folder cannot be read."""
    pattern = re.compile(re.escape(name) + r"-\d+\.seg")
    try:
        names = sorted(filter(pattern.fullmatch, os.listdir(directory)))
    except OSError:
        return []
    return [directory / each for each in names]


def batch_lanes(names: Iterable[str]) -> list[tuple[int, str]]:
    """(loader, lane) of the lanes of batches among the files of a process's
    folder."""
    found = (_BATCHES.fullmatch(name) for name in names)
    return sorted({(int(match[2]), match[1]) for match in found if match})
