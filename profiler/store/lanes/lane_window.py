"""A lane followed while it grows: its newest records in memory, older ones as totals, any stretch
of it on demand.

A poll reads only what is new, so that following a lane of a million records costs what following a
short one does. Older segments are summed up one at a time by `catch_up`, in the order in which they
were written. Where the recording process has compacted them itself, its own totals, which reach as
far or further, take the place of ours.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import RunUnreadable
from ...base.plausible import believed
from ...base.schema import Schema
from .columns import Columns, ColumnsBuilder, LaneContent, checked_header
from .compacted import Compacted
from .compaction import derive_compute
from .lane_reader import SegmentInfo, read_compacted, read_segment, segments
from .segment_file import COMMITTED_OFFSET, HEADER_BYTES

# Device times are written into a record after it was committed, at most so many batches later
# (device.MAX_PENDING).
PATCHED_ROWS = 260

# Records are kept by whole segments; a stretch asked for again (the scrubber held still) is not
# read again.
KEPT_SEGMENTS = 8

Records = npt.NDArray[Any]
OnCompaction = Callable[[Records, npt.NDArray[np.int64] | None], None]


class LaneWindow:
    """One lane: `poll` it, then ask for its `content`. Not for two threads at a time; never raises
    for what it reads.

    `keep_rows` is the least number of newest records kept, where there are so many. Without
    `totals`, older ones are let go. `on_compaction` is told of every stretch of records as it
    becomes totals, with its compute times.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        schema: Schema,
        keep_rows: int,
        totals: bool,
        on_compaction: OnCompaction | None = None,
    ) -> None:
        self.directory = directory
        self.name = name
        self.schema = schema
        self.keep_rows = keep_rows
        self.totals = totals
        self.on_compaction = on_compaction
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
        return next(
            (int(part["seq"][-1]) for part in reversed(self._parts) if len(part)),
            self.compacted.through_seq,
        )

    @property
    def first_seq(self) -> int:
        """Number of the oldest record in memory."""
        return next(
            (int(part["seq"][0]) for part in self._parts if len(part)),
            self.compacted.through_seq + 1,
        )

    @property
    def pending(self) -> int:
        """Records older than those in memory that are not among the totals yet."""
        return max(0, self.first_seq - 1 - self.compacted.through_seq) if self.totals else 0

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
            return self.version != before
        self._trim()
        return self.version != before

    def catch_up(self) -> bool:
        """Sum up one older segment; False when none is left."""
        if not self.pending or self._behind is None:
            return False
        if self._behind >= self._numbers[0]:  # nothing left on disk: what is missing is missing
            self.compacted.through_seq = self.first_seq - 1
            return False
        try:
            records, _ = read_segment(self._path(self._behind))
        except RunUnreadable:
            self._reread_compacted()
            return True
        following = self._first_record(self._behind + 1)
        self._behind += 1
        if len(records) and records["seq"][0] > self.compacted.through_seq:
            self._sum_up(records, following)
        self.version += 1
        return True

    def content(self, t_ns: int | None = None) -> LaneContent:
        """The newest records with the totals of the others; with `t_ns`, those written until then,
        without totals."""
        if t_ns is None:
            counted = max(0, self.compacted.through_seq - self.first_seq + 1) if self.rows else 0
            return LaneContent(self._columns(self._parts, counted), self.compacted)
        return LaneContent(self._columns(self._until(t_ns)), Compacted())

    def begin_ns(self) -> int | None:
        """The time of the oldest record that can still be looked at."""
        paths = segments(self.directory, self.name)
        record = self._first_record(_number(paths[0])) if paths else None
        if record is None and self.rows:
            record = next(part for part in self._parts if len(part))[:1]
        return int(record[self._time][0]) if record is not None else None

    def end_ns(self) -> int | None:
        """The time of the newest record."""
        return next(
            (int(part[self._time][-1]) for part in reversed(self._parts) if len(part)), None
        )

    def _path(self, number: int) -> Path:
        return self.directory / f"{self.name}-{number:06d}.seg"

    def _attach(self) -> bool:
        """Begin: the newest segments, as many as the window needs."""
        numbers = [_number(path) for path in segments(self.directory, self.name)]
        if self.totals:
            self._reread_compacted(numbers)
        for number in reversed(numbers):
            path = self._path(number)
            try:
                info = checked_header(path, self.schema)
                records, _ = read_segment(path)
            except RunUnreadable:
                if self._numbers:
                    break
                continue  # the newest may be only just being made
            if self._parts and records.dtype != self._parts[0].dtype:
                break
            if not self._numbers:
                self._info = info
            self._numbers.insert(0, number)
            self._parts.insert(0, records)
            if self.rows >= self.keep_rows:
                break
        if not self._numbers:
            return False
        self._behind = numbers[0]
        self.version += 1
        return True

    def _grow(self) -> None:
        """What is new in the newest segment, and what was patched into its last records."""
        assert self._info is not None
        info, part = self._info, self._parts[-1]
        size = info.dtype.itemsize
        with self._path(self._numbers[-1]).open("rb", buffering=0) as file:
            # The count is read before the records it counts: what it covers is whole.
            file.seek(COMMITTED_OFFSET)
            told = file.read(8)
            committed = min(struct.unpack("<Q", told)[0], info.capacity) if len(told) == 8 else 0
            start = max(0, len(part) - PATCHED_ROWS) if self.schema.name in _PATCHED else len(part)
            if committed < len(part) or (committed == len(part) and start == len(part)):
                return
            file.seek(HEADER_BYTES + start * size)
            data = file.read((committed - start) * size)
        fresh = np.frombuffer(data, dtype=info.dtype, count=len(data) // size)
        expected = np.arange(info.first_seq + start, info.first_seq + start + len(fresh))
        wrong = np.flatnonzero(fresh["seq"] != expected)
        fresh, _ = believed(fresh[: wrong[0]] if len(wrong) else fresh)
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
        path = self._path(number)
        if not path.exists():
            later = [n for n in map(_number, segments(self.directory, self.name)) if n >= number]
            if not later:
                return False
            number, path = later[0], self._path(later[0])
        info = checked_header(path, self.schema)
        if info.dtype != self._info.dtype:
            raise RunUnreadable(f"{path} holds other records")
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
            if self.totals and len(part) and int(part["seq"][-1]) > self.compacted.through_seq:
                self._sum_up(part, next((p[:1] for p in self._parts if len(p)), None))

    def _sum_up(self, records: Records, following: Records | None) -> None:
        compute = None
        if "compute_ns" in (records.dtype.names or ()):
            joined = records if following is None else np.concatenate([records, following])
            compute = derive_compute(joined)[: len(records)]
        self.compacted.add(records, compute)
        if self.on_compaction is not None:
            self.on_compaction(records, compute)

    def _reread_compacted(self, numbers: list[int] | None = None) -> None:
        """A segment has gone: the recording process has summed it up itself, and all before it."""
        try:
            compacted = read_compacted(self.directory, self.name)
        except RunUnreadable:
            compacted = Compacted()
        if compacted.through_seq >= self.compacted.through_seq and compacted.records:
            self.compacted = compacted
        left = (
            [_number(path) for path in segments(self.directory, self.name)]
            if numbers is None
            else numbers
        )
        least = self._behind + 1 if self._behind is not None else 0
        self._behind = next(
            (n for n in left if n >= least), self._numbers[0] if self._numbers else None
        )

    def _until(self, t_ns: int) -> list[Records]:
        """At least `keep_rows` records that end with the newest at or before this time, where there
        are so many."""
        numbers = [_number(path) for path in segments(self.directory, self.name)]
        low, high = 0, len(numbers)  # numbers[:low] begin at or before t_ns
        while low < high:
            middle = (low + high) // 2
            first = self._first_record(numbers[middle])
            if first is not None and int(first[self._time][0]) <= t_ns:
                low = middle + 1
            else:
                high = middle
        parts: list[Records] = []
        for number in reversed(numbers[:low]):
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
                records, _ = read_segment(self._path(number))
                checked_header(self._path(number), self.schema)
            except RunUnreadable:
                return None
            while len(self._cache) >= KEPT_SEGMENTS:
                del self._cache[next(iter(self._cache))]
            self._cache[number] = records
        return self._cache[number]

    def _first_record(self, number: int) -> Records | None:
        """The first record of a segment, None where it cannot be read."""
        if number in self._numbers:
            part = self._parts[self._numbers.index(number)]
            return part[:1] if len(part) else None
        if number in self._cache:
            return self._cache[number][:1]
        try:
            info = checked_header(self._path(number), self.schema)
            if not info.committed:
                return None
            with self._path(number).open("rb", buffering=0) as file:
                file.seek(HEADER_BYTES)
                data = file.read(info.dtype.itemsize)
            return believed(np.frombuffer(data, dtype=info.dtype, count=1))[0]
        except (OSError, ValueError, RunUnreadable):
            return None

    def _columns(self, parts: list[Records], counted: int = 0) -> Columns:
        """The records as columns, without the first `counted`, which are among the totals
        already."""
        rows = sum(map(len, parts))
        builder = ColumnsBuilder(self.schema, rows, parts[0].dtype if parts else None)
        for part in parts:
            builder.add(part)
        return builder.columns(min(counted, rows))


_PATCHED = frozenset({"batch", "epoch"})


def _number(path: str | os.PathLike[str]) -> int:
    """000012 of NAME-000012.seg."""
    return int(Path(path).stem.rpartition("-")[2])
