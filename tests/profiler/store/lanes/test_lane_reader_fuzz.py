"""Whatever bytes a segment holds, reading it raises a LoaderscopeError or nothing.

Whole runs are damaged in `tests/reports/test_fuzz_formats.py`."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import write_lane
from loaderscope.profiler.base import schema
from loaderscope.profiler.base.errors import LoaderscopeError
from loaderscope.profiler.store.lanes.columns import read_lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import (
    FORMAT_VERSION,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    SCHEMA_OFFSET,
)

FUZZ = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
WORDS = st.sampled_from(["seq", "t_ns", "wait_ns", "q", "f", "i", "", "é"])
FIELD = st.lists(WORDS | st.integers(-4, 70_000) | st.none(), min_size=4, max_size=4)


@contextmanager
def quiet() -> Iterator[None]:
    with suppress(LoaderscopeError):
        yield


def read_each_way(path: Path, lane: str, fields: schema.Schema) -> None:
    with quiet():
        read_segment(path)
    read_lane(path.parent, lane, fields)


@FUZZ
@given(data=st.binary(max_size=9000), keep=st.sampled_from([0, 8, 12, 40, 64, HEADER_BYTES]))
def test_random_bytes_as_a_segment(tmp_path: Path, data: bytes, keep: int) -> None:
    """After a header, whole or cut: LoaderscopeError or nothing, and the lane is read."""
    path = tmp_path / "machine-000000.seg"
    write_lane_once(tmp_path)
    whole = (tmp_path / "good.bytes").read_bytes()
    path.write_bytes(whole[:keep] + data)
    read_each_way(path, "machine", schema.MACHINE)


def write_lane_once(folder: Path) -> None:
    if not (folder / "good.bytes").exists():
        (folder / "made").mkdir()
        write_lane(folder / "made", "machine", schema.MACHINE, [{"t_ns": n} for n in range(20)])
        (folder / "good.bytes").write_bytes((folder / "made" / "machine-000000.seg").read_bytes())


HEADERS = st.tuples(
    st.sampled_from([FORMAT_VERSION, 0, 2, 2**32 - 1]),
    st.sampled_from([HEADER_BYTES, 0]) | U32,
    st.sampled_from([8, 24, 224, 1 << 16]) | U32,  # bytes of a record
    *(U32, U64, U64),  # capacity, first seq, committed
)
NAMES, VERSIONS = st.sampled_from(["batch", "machine", ""]), st.integers(-1, 3)
DESCRIBED = st.tuples(NAMES, VERSIONS, st.lists(FIELD, max_size=5)) | JSON


def write_segment(folder: Path, header: tuple[int, ...], text: bytes, records: bytes) -> Path:
    path = folder / "batch-000000.seg"
    head = HEADER.pack(MAGIC, *header).ljust(SCHEMA_OFFSET, b"\0") + text
    path.write_bytes(head[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0") + records)
    return path


@FUZZ
@given(header=HEADERS, length=st.none() | U32, described=DESCRIBED)
def test_headers_that_lie(tmp_path: Path, header: tuple[int, ...], length, described) -> None:
    """No other error, no reading beyond the file."""
    text = json.dumps(described).encode()
    whole = *header, len(text) if length is None else length
    read_each_way(write_segment(tmp_path, whole, text, bytes(2000)), "batch", schema.BATCH)


@pytest.mark.parametrize(
    "schema_fields",
    [
        [["seq", "q", 2, 0]],
        [["seq", "f", 1, 0]],
        [["seq", "q", 1, 0], ["wait_ns", "f", 1, 8]],
        [["seq", "q", 1, 0], ["wait_ns", "q", 2, 8]],
    ],
)
@pytest.mark.parametrize("first_seq", [1, 2**64 - 1])
@pytest.mark.parametrize("capacity", [3, 2**32 - 1])
def test_plausible_headers_with_absurd_numbers(tmp_path, schema_fields, first_seq, capacity):
    """Terabytes promised, numbers beyond an int64, a `seq` that is an array or a float."""
    text = json.dumps(["batch", 1, schema_fields]).encode()
    header = FORMAT_VERSION, HEADER_BYTES, 1 << 15, capacity, first_seq, 2**64 - 1, len(text)
    body = struct.pack("<q", 1).ljust(1 << 15, b"\0") * 3
    path = write_segment(tmp_path, header, text, body)
    with quiet():
        read_segment(path)
    assert read_lane(tmp_path, "batch", schema.BATCH).columns.rows <= 3
