"""A lane followed while it grows: its newest records in memory, older ones as totals, any stretch
of it on demand.

A poll reads only what is new, so that following a lane of a million records costs what following a
short one does. Older segments are summed up one at a time by `catch_up`, in the order in which they
were written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...base.errors import RunUnreadable
from ...base.schema import LATE_ROWS, Schema
from .columns import ColumnsBuilder, LaneContent, derive_compute
from .compacted import Compacted
from .lane_reader import MAX_SEQ, Records, SegmentInfo, read_header, read_records, read_segment
from .segment_file import segment_number, segment_path, segments

# Records are kept by whole segments; a stretch asked for again (the scrubber held still) is not
# read again.
KEPT_SEGMENTS = 8

OnOlder = Callable[[Records, npt.NDArray[np.int64] | None], None]


class LaneWindow:
    """One lane: `poll` it, then ask for its `content`. Not for two threads at a time; never raises
    for what it reads.

    `keep_rows` is the least number of newest records kept, where there are so many. Without
    `totals`, older ones are let go. `on_older` gets every stretch of records as it
    becomes totals, with its compute times.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        schema: Schema,
        keep_rows: int,
        totals: bool,
        on_older: OnOlder | None = None,
    ) -> None:
        self.directory = directory
        self.name = name
        self.schema = schema
        self.keep_rows = keep_rows
        self.totals = totals
        self.on_older = on_older
        self.compacted = Compacted()
        self.version = 0  # grows whenever there is something new to see
        self._behind: int | None = None  # number of the segment to sum up next
        self._numbers: list[int] = []  # of the segments in the window
        self._parts: list[Records] = []  # and their records
        self._info: SegmentInfo | None = None  # of the newest
        self._time = schema.fields[1].name
        self._cache: dict[int, Records] = {}

    @property
    def rows(self) -> int:
        """Records in memory."""
        return sum(map(len, self._parts))

    @property
    def newest_seq(self) -> int:
        """Number of the newest record, 0 before the first: so many were ever written."""
        newest = self._record(-1)
        return self.compacted.records if newest is None else int(newest["seq"][0])

    @property
    def first_seq(self) -> int:
        """Number of the oldest record in memory."""
        oldest = self._record(0)
        return self.compacted.records + 1 if oldest is None else int(oldest["seq"][0])

    @property
    def pending(self) -> int:
        """Records older than those in memory that are not among the totals yet."""
        return max(0, self.first_seq - 1 - self.compacted.records) if self.totals else 0

    def poll(self) -> bool:
        """Read what is new; True if there was anything."""
        before = self.version
        try:
            if not self._numbers and not self._attach():
                return False
            self._grow()
            while self._next():
                self._grow()
        except (OSError, RunUnreadable):  # gone, or not what it was: what was read stays
            pass
        else:
            self._trim()
        return self.version != before

    def catch_up(self) -> bool:
        """Sum up one older segment; False when none is left."""
        if not self.pending or self._behind is None:
            return False
        number = self._behind
        if number >= self._numbers[0]:  # nothing left on disk: what is missing is missing
            self.compacted.records = self.first_seq - 1
            return False
        self._behind = number + 1
        try:
            records, _ = read_segment(self._path(number))
        except RunUnreadable:  # it has made room for newer ones
            return True
        self._sum_up(records, self._first_record(number + 1))
        self.version += 1
        return True

    def content(self, t_ns: int | None = None) -> LaneContent:
        """The newest records with the totals of the others; with `t_ns`, those written until then,
        without totals."""
        parts, totals = self._parts, self.compacted
        if t_ns is not None:
            parts, totals = self._until(t_ns), Compacted()
        rows = sum(map(len, parts))
        builder = ColumnsBuilder(self.schema, rows, parts[0].dtype if parts else None)
        for part in parts:
            builder.add(part)
        return LaneContent(builder.columns(), totals)

    def begin_ns(self) -> int | None:
        """The time of the oldest record that can still be looked at."""
        numbers = self._on_disk()
        record = self._first_record(numbers[0]) if numbers else None
        return self._time_of(self._record(0) if record is None else record)

    def end_ns(self) -> int | None:
        """The time of the newest record."""
        return self._time_of(self._record(-1))

    def _time_of(self, record: Records | None) -> int | None:
        return None if record is None else int(record[self._time][0])

    def _record(self, at: int) -> Records | None:
        """The first (0) or last (-1) record in memory."""
        parts = [part for part in self._parts if len(part)]
        return parts[at][at:][:1] if parts else None

    def _path(self, number: int) -> Path:
        return Path(segment_path(self.directory, self.name, number))

    def _on_disk(self) -> list[int]:
        return [segment_number(path) for path in segments(self.directory, self.name)]

    def _attach(self) -> bool:
        """Begin: the newest segments, as many as the window needs."""
        on_disk = self._on_disk()
        for number in reversed(on_disk):
            try:
                records, info = read_segment(self._path(number), self.schema)
            except RunUnreadable:
                if self._numbers:
                    break
                continue  # the newest may be only just being made
            if self._info is None:
                self._info = info
            if info.dtype != self._info.dtype:
                break
            self._numbers.insert(0, number)
            self._parts.insert(0, records)
            if self.rows >= self.keep_rows:
                break
        if not self._numbers:
            return False
        self._behind = on_disk[0] if self.totals else self._numbers[0]
        self.version += 1
        return True

    def _grow(self) -> None:
        """What is new in the newest segment, and what was patched into its last records."""
        part = self._parts[-1]
        info = read_header(self._path(self._numbers[-1]), self.schema)
        start = max(0, len(part) - (LATE_ROWS if self.schema.name in _PATCHED else 0))
        if info.committed < len(part) or info.committed == start:
            return
        fresh, _ = read_records(info, start)
        if start + len(fresh) < len(part) or fresh.tobytes() == part[start:].tobytes():
            return
        self._parts[-1] = np.concatenate([part[:start], fresh])
        self.version += 1

    def _next(self) -> bool:
        """Go on to the next segment, if this one is full and there is one."""
        assert self._info is not None
        if len(self._parts[-1]) < self._info.capacity:
            return False
        number = self._numbers[-1] + 1
        if not self._path(number).exists():
            number = next((later for later in self._on_disk() if later > number), -1)
            if number < 0:
                return False
        info = read_header(self._path(number), self.schema)
        if info.dtype != self._info.dtype:
            raise RunUnreadable(f"{info.path} holds other records")
        self._info = info
        self._numbers.append(number)
        self._parts.append(np.empty(0, info.dtype))
        return True

    def _trim(self) -> None:
        """Let the oldest segments in memory go, as long as enough remains."""
        while (
            len(self._parts) > 1
            and self.rows - len(self._parts[0]) >= self.keep_rows
            and not self.pending
        ):
            part = self._parts.pop(0)
            self._numbers.pop(0)
            self._behind = self._numbers[0]
            if self.totals:
                self._sum_up(part, self._record(0))

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
        if self.on_older is not None:
            self.on_older(records, compute)

    def _until(self, t_ns: int) -> list[Records]:
        """At least `keep_rows` records that end with the newest at or before this time, where there
        are so many."""

        def begins_ns(number: int) -> int:
            begun = self._time_of(self._first_record(number))
            return MAX_SEQ if begun is None else begun

        numbers = self._on_disk()
        parts: list[Records] = []
        for number in reversed(numbers[: bisect_right(numbers, t_ns, key=begins_ns)]):
            records = self._segment(number)
            if records is None or (parts and records.dtype != parts[0].dtype):
                break
            parts.insert(0, records if parts else records[records[self._time] <= t_ns])
            if sum(map(len, parts)) >= self.keep_rows:
                break
        return parts

    def _segment(self, number: int) -> Records | None:
        if number in self._numbers:
            return self._parts[self._numbers.index(number)]
        if number not in self._cache:
            try:
                records, _ = read_segment(self._path(number), self.schema)
            except RunUnreadable:
                return None
            while len(self._cache) >= KEPT_SEGMENTS:
                del self._cache[next(iter(self._cache))]
            self._cache[number] = records
        return self._cache[number]

    def _first_record(self, number: int) -> Records | None:
        """The first record of a segment, None where it cannot be read."""
        try:
            if number in self._numbers or number in self._cache:
                records = self._segment(number)
            else:
                records, _ = read_records(read_header(self._path(number), self.schema), 0, 1)
        except RunUnreadable:
            return None
        return records[:1] if records is not None and len(records) else None


_PATCHED = frozenset({"batch", "epoch"})
