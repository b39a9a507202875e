"""Reading a lane while it is being written, without NumPy: each call gives the records that are
new."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from ..base.schema import Schema
from ..store.lanes.segment_file import FORMAT_VERSION, HEADER, HEADER_BYTES, MAGIC


class LaneTail:
    """Follows the segments of one lane. A file that is no such lane gives nothing; a damaged one,
    nothing more."""

    def __init__(
        self, directory: Path, name: str, schema: Schema, at_most: int | None = None
    ) -> None:
        """`at_most`: of more new records in a segment than this, only the latest are taken."""
        self.directory = directory
        self.name = name
        self.schema = schema
        self.at_most = at_most
        self.given_up: str | None = None
        self._number: int | None = None  # of the segment being read
        self._taken = 0  # records taken from it

    def new(self) -> list[tuple[float, ...]]:
        """The records committed since the last call, in order, each with all fields of the schema.
        Never raises."""
        found: list[tuple[float, ...]] = []
        while self.given_up is None:
            try:
                number = self._first() if self._number is None else self._number
                if number is None:
                    break
                self._number = number
                full = self._take(found)
            except FileNotFoundError:
                if not self._skip():
                    break
                continue
            except (OSError, ValueError, struct.error) as error:
                self.given_up = f"{self.directory}/{self.name}: {error}"
                break
            if not full:
                break
            self._number, self._taken = self._number + 1, 0
        return found

    def _take(self, found: list[tuple[float, ...]]) -> bool:
        """Adds what is new in the present segment; True when the segment is full and read to its
        end."""
        schema = self.schema
        fd = os.open(
            f"{self.directory}/{self.name}-{self._number:06d}.seg",
            os.O_RDONLY | getattr(os, "O_CLOEXEC", 0),
        )
        try:
            # The count is read before the records it counts: what it covers is whole.
            header = os.read(fd, HEADER.size)
            if len(header) < HEADER.size:
                return False
            magic, version, header_bytes, record_bytes, capacity, first, committed, _ = (
                HEADER.unpack(header)
            )
            known = (magic, version, header_bytes, record_bytes) == (
                MAGIC,
                FORMAT_VERSION,
                HEADER_BYTES,
                schema.size,
            )
            if not known or not capacity:
                # its header is being written; or it is not such a lane, and never gives anything
                return False
            fresh = min(committed, capacity) - self._taken
            if self.at_most is not None and fresh > self.at_most:
                self._taken += fresh - self.at_most
                fresh = self.at_most
            if fresh > 0:
                os.lseek(fd, HEADER_BYTES + self._taken * record_bytes, os.SEEK_SET)
                data = os.read(fd, fresh * record_bytes)
                for at in range(0, len(data) - record_bytes + 1, record_bytes):
                    record = struct.unpack_from(schema.format, data, at)
                    if record[0] != first + self._taken:
                        raise ValueError("records out of order")
                    found.append(record)
                    self._taken += 1
            return bool(self._taken >= capacity)
        finally:
            os.close(fd)

    def _numbers(self) -> list[int]:
        prefix = self.name + "-"
        try:
            names = os.listdir(self.directory)
        except OSError:
            return []
        numbers = (
            name[len(prefix) : -4]
            for name in names
            if name.startswith(prefix) and name.endswith(".seg")
        )
        return sorted(int(number) for number in numbers if number.isdigit())

    def _first(self) -> int | None:
        numbers = self._numbers()
        return numbers[0] if numbers else None

    def _skip(self) -> bool:
        """The segment is not there: not made yet (False), or folded away and later ones exist
        (True)."""
        later = [
            number for number in self._numbers() if self._number is None or number > self._number
        ]
        if not later:
            return False
        self._number, self._taken = later[0], 0
        return True
