"""A lane as columns: one NumPy array a field, as narrow as recorded, read segment by segment.

The records are never held as a whole: the columns of each segment (1 MiB) are copied. A column in
which nothing was measured takes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...base.arrays import Array, Floats, Ints
from ...base.errors import RunUnreadable
from ...base.metadata import clean
from ...base.schema import BATCH, Field, Schema
from .lane_reader import TYPES, read_segment
from .segment_file import segments


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

    def floats(self, name: str) -> Floats:
        """A column as float64, NaN where it was not measured. KeyError for an unknown name."""
        values = self[name]
        if values.dtype.kind == "f":
            return values.astype(np.float64)
        return np.where(values < 0, np.nan, values)

    def measured(self, name: str) -> bool:
        """Whether at least one value of this column was measured."""
        return bool(np.any(self[name] >= 0))

    @staticmethod
    def empty(schema: Schema) -> Columns:
        return ColumnsBuilder(schema).columns()


@dataclass(frozen=True)
class LaneContent:
    """What could be read of a lane: records, how many are older than these, and notes on what
    could not be read."""

    columns: Columns
    older: int = 0
    notes: tuple[str, ...] = ()


LaneSource = Callable[[Path, str, Schema], LaneContent]


def read_lane(
    directory: Path, name: str, schema: Schema, at_least: int | None = None
) -> LaneContent:
    """The newest records, `at_least` so many where there are; None: all. Never raises for what a
    lane contains: a segment that cannot be read is left out, with a note."""
    notes: list[str] = []
    builder = ColumnsBuilder(schema)
    missing = disbelieved = following = 0  # `following`: number of the oldest record read
    paths = segments(directory, name)
    for path in reversed(paths):
        if at_least is not None and builder.rows >= at_least:
            break
        try:
            records, first, wrong = read_segment(path, schema)
        except RunUnreadable as error:
            if isinstance(error.__cause__, FileNotFoundError):
                break  # it has made room for newer ones, and so have those before it
            if path is not paths[-1] or not _unborn(path):
                notes.append(f"{error}: left out")
            continue
        end = first + len(records)
        if following and end > following:
            shown = clean(path.name)
            notes.append(f"{shown} repeats records of the segment after it: left out")
            continue
        missing += following - end if following else 0
        following = first
        builder.add_before(records)
        disbelieved += wrong
    if missing:
        notes.append(f"{missing} records of lane {clean(name)} are missing")
    if disbelieved:
        notes.append(f"{disbelieved:,} impossible values of lane {clean(name)} are left out")
    return LaneContent(builder.columns(), max(0, following - 1), tuple(notes))


def _unborn(path: Path) -> bool:
    """Whether a newest segment was only just created (or its process killed then): no header yet,
    so no records."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return not file.read(8).strip(b"\0")
    return False


def read_batches(directory: Path, lanes: list[str], read: LaneSource) -> LaneContent:
    """All batches of these lanes of a loader in order of time, with their compute times."""
    contents = [read(directory, name, BATCH) for name in lanes]
    batches = merge_lanes([with_compute(each.columns) for each in contents], BATCH)
    older = sum(each.older for each in contents)
    return LaneContent(batches, older, tuple(note for each in contents for note in each.notes))


def merge_lanes(contents: list[Columns], schema: Schema) -> Columns:
    """Several lanes as one table, in order of `t_ns`. What was not measured takes no memory."""
    contents = [columns for columns in contents if columns.rows]
    if len(contents) < 2:
        return contents[0] if contents else Columns.empty(schema)
    order = np.argsort(np.concatenate([columns["t_ns"] for columns in contents]), kind="stable")
    arrays = {}
    for name in contents[0]:
        parts = [columns[name] for columns in contents]
        if any(part.strides[0] for part in parts):
            arrays[name] = np.concatenate(parts)[order]
        else:
            arrays[name] = np.broadcast_to(parts[0][:1], len(order))
    return Columns(arrays, len(order))


def with_compute(columns: Columns) -> Columns:
    """The columns of one lane with `compute_ns` derived, each epoch by itself where two
    interleave."""
    if not columns.rows:
        return columns
    order = np.argsort(columns["epoch"], kind="stable")
    needed = ("compute_ns", "t_ns", "wait_ns", "epoch")
    compute = np.empty(columns.rows, np.int64)
    compute[order] = derive_compute({name: columns[name][order] for name in needed})
    return Columns({**columns, "compute_ns": compute}, columns.rows)


def derive_compute(records: Mapping[str, Array]) -> Ints:
    """Compute time a batch, ns: from hand-over to the next next() of the same iteration; -1 where
    it is not known."""
    compute: Ints = records["compute_ns"].astype(np.int64)
    handed = records["t_ns"] + records["wait_ns"]
    gap = records["t_ns"][1:] - handed[:-1]
    known = (compute[:-1] < 0) & (records["epoch"][1:] == records["epoch"][:-1]) & (gap >= 0)
    compute[:-1][known] = gap[known]
    return compute


def _unmeasured(f: Field, rows: int) -> Array:
    value = np.array(np.nan if f.code == "f" else -1, dtype=TYPES[f.code])
    return np.broadcast_to(value, rows)


class ColumnsBuilder:
    """Columns being filled from their ends, segment by segment, the newest first. Room that is not
    filled takes no memory, nor does a column without measured values."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rows = 0
        self._room: dict[str, Array] = {}

    def add_before(self, records: Array) -> None:
        names, rows = records.dtype.names or (), self.rows + len(records)
        for f in self.schema.fields:
            found = records[f.name] if f.name in names else np.empty(0)
            empty = _unmeasured(f, len(records))
            # One that was recorded as something else is not what this field means.
            known = (found.dtype, found.shape) == (empty.dtype, empty.shape) and np.any(found >= 0)
            room = self._room.get(f.name)
            if room is None and not known:
                continue
            if room is None or len(room) < rows:
                later = self._column(f)
                self._room[f.name] = room = np.empty(2 * rows, empty.dtype)
                room[len(room) - self.rows :] = later
            room[len(room) - rows : len(room) - self.rows] = found if known else empty
        self.rows = rows

    def _column(self, f: Field) -> Array:
        room = self._room.get(f.name)
        return _unmeasured(f, self.rows) if room is None else room[len(room) - self.rows :]

    def columns(self) -> Columns:
        """All rows that were added."""
        return Columns({f.name: self._column(f) for f in self.schema.fields}, self.rows)
