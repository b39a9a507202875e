"""Reading a lane while it is being written, without NumPy: each call gives the records that are
new."""

from __future__ import annotations

import struct
from pathlib import Path

from ...base.schema import Schema
from .segment_file import (
    FORMAT_VERSION,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    segment_number,
    segment_path,
    segments,
)


class LaneTail:
    """Follows the segments of one lane. A file that is no such lane gives nothing; a damaged one,
    nothing more."""

    def __init__(
        self, directory: Path, name: str, schema: Schema, at_most: int | None = None
    ) -> None:
        """`at_most`: of more new records in a segment than this, only the latest are read. It then
        begins with the newest segment."""
        self.directory = directory
        self.name = name
        self.schema = schema
        self.at_most = at_most
        self.given_up: str | None = None
        self._number = -1  # of the segment being read
        self._taken = 0  # records taken from it

    def new(self) -> list[tuple[float, ...]]:
        """The records committed since the last call, in order, each with all fields of the schema.
        Never raises."""
        found: list[tuple[float, ...]] = []
        while self.given_up is None:
            try:
                full, following = self._take(found), self._number + 1
            except FileNotFoundError:  # not made yet, or removed while later ones exist
                numbers = [segment_number(path) for path in segments(self.directory, self.name)]
                later = [number for number in numbers if number > self._number]
                if self._number < 0 and self.at_most is not None:
                    later = later[-1:]
                full = bool(later)
                following = later[0] if later else -1
            except (OSError, ValueError, struct.error) as error:
                self.given_up = f"{self.directory}/{self.name}: {error}"
                break
            if not full:
                break
            self._number, self._taken = following, 0
        return found

    def _take(self, found: list[tuple[float, ...]]) -> bool:
        """Adds what is new in the present segment; True when the segment is full and read to its
        end."""
        size = self.schema.size
        with open(segment_path(self.directory, self.name, self._number), "rb", buffering=0) as file:
            # The count is read before the records it counts: what it covers is whole.
            header = file.read(HEADER.size)
            if len(header) < HEADER.size:
                return False
            *kind, capacity, first, committed, _ = HEADER.unpack(header)
            if kind != [MAGIC, FORMAT_VERSION, HEADER_BYTES, size] or not capacity:
                # its header is being written; or it is not such a lane, and never gives anything
                return False
            fresh = min(committed, capacity) - self._taken
            if self.at_most is not None and fresh > self.at_most:
                self._taken += fresh - self.at_most
                fresh = self.at_most
            if fresh > 0:
                file.seek(HEADER_BYTES + self._taken * size)
                data = file.read(fresh * size)
                for at in range(0, len(data) - size + 1, size):
                    record = struct.unpack_from(self.schema.format, data, at)
                    if record[0] != first + self._taken:
                        raise ValueError("records out of order")
                    found.append(record)
                    self._taken += 1
            return bool(self._taken >= capacity)
