"""A lane as columns: one NumPy array a field, kept as narrow as it was recorded, read segment by
segment.

The records are never held as a whole: each segment (1 MiB) is copied into preallocated columns and
let go. A column nothing was measured in takes no memory at all.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...base.errors import RunUnreadable
from ...base.metadata import clean
from ...base.schema import Field, Schema
from .compacted import Compacted
from .compaction import derive_compute
from .lane_reader import TYPES, SegmentInfo, read_compacted, read_header, read_segment, segments

Array = npt.NDArray[Any]

# Compaction unlinks a segment after its totals are written: a reader that meets one half-gone
# starts the lane again, and so it does where it meets one half-made.
ATTEMPTS = 20


class Columns(Mapping[str, Array]):
    """Field name → array of `rows` values, read-only. Integers not measured hold -1, floats NaN."""

    def __init__(self, arrays: Mapping[str, Array], rows: int) -> None:
        self.rows = rows
        self._arrays = dict(arrays)
        for array in self._arrays.values():
            array.flags.writeable = False

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        """The number of columns; `rows` is the number of records."""
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"<Columns: {self.rows} rows of {', '.join(self)}>"

    def floats(self, name: str) -> npt.NDArray[np.float64]:
        """A column as float64, NaN where it was not measured. KeyError for an unknown name."""
        values = self[name]
        if values.dtype.kind == "f":
            return values.astype(np.float64)
        return np.where(values < 0, np.nan, values)

    def measured(self, name: str) -> bool:
        """Whether at least one value of this column was measured."""
        return bool(np.any(self[name] >= 0))

    @classmethod
    def empty(cls, schema: Schema) -> Columns:
        return cls({f.name: _unmeasured(f, 0, f.count) for f in schema.fields}, 0)


@dataclass(frozen=True)
class LaneContent:
    """What could be read of a lane: its detail, what was compacted, and sentences on what could not
    be read."""

    columns: Columns
    compacted: Compacted = field(default_factory=Compacted)
    notes: tuple[str, ...] = ()


class _Changed(Exception):
    """A segment was compacted, or was being made, while the lane was read."""


def read_lane(directory: Path, name: str, schema: Schema) -> LaneContent:
    """Never raises for what a lane contains: a segment that cannot be read is left out, with a
    note."""
    for attempt in range(ATTEMPTS):
        try:
            return _read_once(directory, name, schema, last=attempt == ATTEMPTS - 1)
        except _Changed:
            continue
    raise AssertionError("the last attempt does not give up")


def _read_once(directory: Path, name: str, schema: Schema, last: bool) -> LaneContent:
    notes: list[str] = []
    plan: list[SegmentInfo] = []
    paths = segments(directory, name)
    for path in paths:
        try:
            plan.append(checked_header(path, schema))
        except RunUnreadable as error:
            if path is paths[-1]:
                if _unborn(path):
                    continue
                if not last:  # its header may be half written: look again
                    raise _Changed from error
            _give_up_or_note(error, path, last, notes)
    builder = ColumnsBuilder(
        schema, sum(info.committed for info in plan), plan[0].dtype if plan else None
    )
    ends: list[tuple[int, int]] = []  # (first seq, rows) of each segment kept
    disbelieved = 0
    for info in plan:
        try:
            records, read = read_segment(info.path)
        except RunUnreadable as error:
            _give_up_or_note(error, info.path, last, notes)
            continue
        if ends and info.first_seq < sum(ends[-1]):
            notes.append(
                f"{clean(info.path.name)} repeats records of the segment before it: left out"
            )
            continue
        ends.append((info.first_seq, builder.add(records[: info.committed])))
        disbelieved += read.disbelieved
    # The totals are read after the segments: one that was compacted meanwhile is counted there and
    # dropped here.
    compacted = _compacted(directory, name, notes)
    drop = sum(max(0, min(rows, compacted.through_seq - first + 1)) for first, rows in ends)
    missing = _gaps(ends, compacted.through_seq)
    if missing:
        notes.append(f"{missing} records of lane {clean(name)} are missing")
    if disbelieved:
        notes.append(
            f"{disbelieved:,} values of lane {clean(name)} cannot be, and count as not measured"
        )
    return LaneContent(builder.columns(drop), compacted, tuple(notes))


def _give_up_or_note(error: RunUnreadable, path: Path, last: bool, notes: list[str]) -> None:
    if not isinstance(error.__cause__, FileNotFoundError):
        notes.append(f"{error}: left out")
    elif not last:
        raise _Changed from error
    else:
        notes.append(f"{clean(path.name)} went away while it was read")


def _unborn(path: Path) -> bool:
    """Whether a newest segment was only just created (or its process killed then): no header yet,
    so no records."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            return not file.read(8).strip(b"\0")
    except OSError:
        return False


def _gaps(ends: list[tuple[int, int]], through_seq: int) -> int:
    expected, missing = through_seq + 1, 0
    for first, rows in ends:
        missing += max(0, first - expected)
        expected = max(expected, first + rows)
    return missing


def checked_header(path: Path, schema: Schema) -> SegmentInfo:
    """The header of a segment that holds such records, as this version knows them. Raises
    RunUnreadable."""
    info = read_header(path)
    if info.schema != schema.name:
        raise RunUnreadable(f"{clean(path)} does not hold {schema.name} records")
    if info.version > schema.version:
        raise RunUnreadable(f"{clean(path)} was written by a newer Loaderscope: upgrade to read it")
    return info


def _compacted(directory: Path, name: str, notes: list[str]) -> Compacted:
    try:
        return read_compacted(directory, name)
    except RunUnreadable as error:
        notes.append(f"{clean(error)}: older batches are not counted")
        return Compacted()


def merge_compacted(lanes: list[Compacted]) -> Compacted:
    """The totals of several lanes as one."""
    merged = Compacted()
    for each in lanes:
        merged.merge(each)
    return merged


def merge_lanes(contents: list[Columns], schema: Schema) -> Columns:
    """Several lanes as one table, in order of `t_ns`."""
    contents = [columns for columns in contents if columns.rows]
    if len(contents) < 2:
        return contents[0] if contents else Columns.empty(schema)
    order = np.argsort(np.concatenate([columns["t_ns"] for columns in contents]), kind="stable")
    arrays = {}
    for name in contents[0]:
        parts = [columns[name] for columns in contents]
        constant = all(part.strides[0] == 0 for part in parts)  # measured in none of them
        arrays[name] = (
            np.broadcast_to(parts[0][:1], (len(order),))
            if constant
            else np.concatenate(parts)[order]
        )
    return Columns(arrays, len(order))


def with_compute(columns: Columns) -> Columns:
    """The columns of one lane with `compute_ns` derived, each epoch by itself where two
    interleave."""
    if not columns.rows:
        return columns
    epoch = columns["epoch"]
    if np.all(epoch[1:] >= epoch[:-1]):
        compute = derive_compute(cast("Array", columns))  # anything indexed by field name will do
    else:
        order = np.argsort(epoch, kind="stable")
        needed = ("compute_ns", "t_ns", "wait_ns", "epoch")
        sorted_compute = derive_compute(
            cast("Array", {name: columns[name][order] for name in needed})
        )
        compute = np.empty_like(sorted_compute)
        compute[order] = sorted_compute
    return Columns({**columns, "compute_ns": compute}, columns.rows)


def _unmeasured(f: Field, rows: int, count: int) -> Array:
    shape: tuple[int, ...] = (rows, count) if f.count > 1 else (rows,)
    value = np.array(np.nan if f.code == "f" else -1, dtype=TYPES[f.code])
    return np.broadcast_to(value, shape)


class ColumnsBuilder:
    """Columns being filled. A column is allocated when its first measured value arrives."""

    def __init__(self, schema: Schema, rows: int, dtype: np.dtype[Any] | None) -> None:
        self.schema = schema
        self.rows = rows
        self.at = 0
        # Arrays a field (a core's share) are as long as the file says: it was recorded on another
        # machine.
        self.counts = {f.name: f.count for f in schema.fields}
        for f in schema.fields:
            if (
                f.count > 1
                and dtype is not None
                and f.name in (dtype.names or ())
                and len(dtype[f.name].shape) == 1
            ):
                self.counts[f.name] = dtype[f.name].shape[0]
        self.arrays: dict[str, Array] = {}

    def add(self, records: Array) -> int:
        start, end = self.at, self.at + len(records)
        for f in self.schema.fields:
            name, type_ = f.name, TYPES[f.code]
            shape: tuple[int, ...] = (self.counts[name],) if f.count > 1 else ()
            known = name in (records.dtype.names or ())
            if known and (records.dtype[name].base != type_ or records.dtype[name].shape != shape):
                known = False  # recorded as something else: not what this field means
            array = self.arrays.get(name)
            if known:
                values = records[name]
                if array is None and not np.any(values >= 0):
                    continue
                if array is None:
                    array = self.arrays[name] = np.empty((self.rows, *shape), type_)
                    array[:start] = _unmeasured(f, start, self.counts[name])
                array[start:end] = values
            elif array is not None:
                array[start:end] = _unmeasured(f, end - start, self.counts[name])
        self.at = end
        return end - start

    def columns(self, drop: int) -> Columns:
        """All rows but the first `drop`."""
        rows = self.at - drop
        arrays = {}
        for f in self.schema.fields:
            array = self.arrays.get(f.name)
            arrays[f.name] = (
                _unmeasured(f, rows, self.counts[f.name])
                if array is None
                else array[drop : self.at]
            )
        return Columns(arrays, rows)
