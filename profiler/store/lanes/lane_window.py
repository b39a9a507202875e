"""A lane that is followed while it grows: its newest records are in memory, older ones are totals.

A poll reads only what is new, so a lane of a million records costs as much as a short one.
`catch_up` adds older segments to the totals one at a time, in the order in which they were written.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...base.errors import RunUnreadable
from ...base.schema import LATE_ROWS, Schema
from .columns import ColumnsBuilder, LaneContent, derive_compute
from .compacted import Compacted
from .lane_reader import Records, read_header, read_records, read_segment
from .segment_file import segment_number, segment_path, segments

PATCHED = ("batch", "epoch")  # records that may change after they were counted


@dataclass(eq=False)
class LaneWindow:
    """One lane: `poll` it, then ask for its `content`. Not thread-safe; never raises for what it
    reads.

    At least the `keep_rows` newest records are in memory. Older ones are dropped without `totals`.
    """

    directory: Path
    name: str
    schema: Schema
    keep_rows: int
    totals: bool
    compacted: Compacted = field(default_factory=Compacted)
    version: int = 0  # grows whenever there is something new to see
    _behind: int = 0  # number of the segment to add to the totals next
    _parts: dict[int, Records] = field(default_factory=dict)  # the segments, oldest first

    @property
    def newest_seq(self) -> int:
        """Number of the newest record, 0 before the first."""
        newest = self._edge(-1)
        return self.compacted.records if newest is None else int(newest["seq"][0])

    @property
    def first_seq(self) -> int:
        """Number of the oldest record in memory."""
        oldest = self._edge(0)
        return self.compacted.records + 1 if oldest is None else int(oldest["seq"][0])

    @property
    def pending(self) -> int:
        """Records older than those in memory that are not among the totals yet."""
        return max(0, self.first_seq - 1 - self.compacted.records) if self.totals else 0

    def poll(self) -> bool:
        """Read what is new; True if there was anything."""
        before = self.version
        with suppress(OSError, RunUnreadable):  # gone, or changed: what was read stays
            if self._parts or self._attach():
                while self._grow():
                    pass
                self._trim()
        return self.version != before

    def catch_up(self) -> bool:
        """Add one older segment to the totals; False when none is left."""
        if not self.pending:
            return False
        number = self._behind
        if number >= min(self._parts):  # nothing left on disk: what is missing is missing
            self.compacted.records = self.first_seq - 1
            return False
        self._behind = number + 1
        with suppress(RunUnreadable):  # it has made room for newer ones
            records, _ = read_segment(self._path(number))
            self._sum_up(records, self._first_record(number + 1))
            self.version += 1
        return True

    def content(self) -> LaneContent:
        """The newest records with the totals of the others."""
        builder = ColumnsBuilder(self.schema)
        for part in self._parts.values():
            builder.add(part)
        return LaneContent(builder.columns(), self.compacted)

    def _edge(self, at: int) -> Records | None:
        """The first (0) or last (-1) record in memory."""
        parts = [part for part in self._parts.values() if len(part)]
        return parts[at][at:][:1] if parts else None

    def _path(self, number: int) -> Path:
        return Path(segment_path(self.directory, self.name, number))

    def _on_disk(self) -> list[int]:
        return list(map(segment_number, segments(self.directory, self.name)))

    def _attach(self) -> bool:
        """Begin with the newest segments, as many as the window needs."""
        on_disk, found = self._on_disk(), dict[int, Records]()
        for number in reversed(on_disk):
            try:
                records, _ = read_segment(self._path(number), self.schema)
            except RunUnreadable:
                if found:
                    break
                continue  # the newest may not be complete yet
            if found and records.dtype != next(iter(found.values())).dtype:
                break
            found[number] = records
            if sum(map(len, found.values())) >= self.keep_rows:
                break
        self._parts = dict(reversed(found.items()))
        if found:
            self._behind = on_disk[0]
            self.version += 1
        return bool(found)

    def _grow(self) -> bool:
        """Read what is new in the newest segment, and what was patched into its last records. True
        if it is full or gone and another follows, which is then the newest."""
        number, part = next(reversed(self._parts.items()))
        if self._path(number).exists():  # else it has made room for newer ones
            info = read_header(self._path(number), self.schema)
            start = max(0, len(part) - (LATE_ROWS if self.schema.name in PATCHED else 0))
            if info.committed >= len(part) and info.committed != start:
                fresh, _ = read_records(info, start)
                if start + len(fresh) >= len(part) and fresh.tobytes() != part[start:].tobytes():
                    part = self._parts[number] = np.concatenate([part[:start], fresh])
                    self.version += 1
            if len(part) < info.capacity:
                return False
        following = next((later for later in self._on_disk() if later > number), None)
        if following is None:
            return False
        info = read_header(self._path(following), self.schema)
        if info.dtype != part.dtype:
            raise RunUnreadable(f"{info.path} holds other records")
        self._parts[following] = np.empty(0, info.dtype)
        return True

    def _trim(self) -> None:
        """Drop the oldest segments in memory, as long as enough remains."""
        while len(self._parts) > 1 and not self.pending:
            oldest, *newer = self._parts.values()
            if sum(map(len, newer)) < self.keep_rows:
                return
            del self._parts[min(self._parts)]
            self._behind = min(self._parts)
            if self.totals:
                self._sum_up(oldest, self._edge(0))

    def _sum_up(self, records: Records, following: Records | None) -> None:
        """Add records to the totals, unless those hold them already."""
        records = records[records["seq"] > self.compacted.records]
        if not len(records):
            return
        compute = None
        if "compute_ns" in (records.dtype.names or ()):
            joined = records if following is None else np.concatenate([records, following])
            compute = derive_compute(joined)[: len(records)]
        self.compacted.add(records, compute)

    def _first_record(self, number: int) -> Records | None:
        """The first record of a segment, None where it cannot be read."""
        records = self._parts.get(number)
        try:
            if records is None:
                info = read_header(self._path(number), self.schema)
                records, _ = read_records(info, 0, 1)
        except RunUnreadable:
            return None
        return records[:1] if len(records) else None
