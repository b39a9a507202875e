"""Whatever bytes a segment holds, reading it raises a LoaderscopeError or nothing.

Whole runs are damaged in `tests/reports/test_fuzz_formats.py`."""

import json
import struct
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loaderscope.profiler.base import schema
from loaderscope.profiler.base.errors import LoaderscopeError
from loaderscope.profiler.store.lanes import segment_file
from loaderscope.profiler.store.lanes.columns import read_lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import FORMAT_VERSION, HEADER, HEADER_BYTES

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


HEADERS = st.tuples(
    st.sampled_from([FORMAT_VERSION, 0, 2, 2**32 - 1]),
    st.sampled_from([HEADER_BYTES, 0]) | U32,
    st.sampled_from([8, 24, 224, 1 << 16]) | U32,  # bytes of a record
    *(U32, U64, U64),  # capacity, first seq, committed
)
NAMES, VERSIONS = st.sampled_from(["batch", "machine", ""]), st.integers(-1, 3)
DESCRIBED = st.tuples(NAMES, VERSIONS, st.lists(FIELD, max_size=5)) | JSON


def columns_of(folder, header, text, records):
    """What is read of a lane with this one segment."""
    path = folder / "batch-000000.seg"
    head = HEADER.pack(segment_file.MAGIC, *header).ljust(segment_file.SCHEMA_OFFSET, b"\0") + text
    path.write_bytes(head[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0") + records)
    with suppress(LoaderscopeError):
        read_segment(path)
    return read_lane(folder, "batch", schema.BATCH).columns


FIXTURES = [HealthCheck.function_scoped_fixture]


@settings(max_examples=80, deadline=None, suppress_health_check=FIXTURES)
@given(header=HEADERS, length=st.none() | U32, described=DESCRIBED)
def test_headers_that_lie(tmp_path, header, length, described):
    """No other error, no reading beyond the file."""
    text = json.dumps(described).encode()
    whole = *header, len(text) if length is None else length
    columns_of(tmp_path, whole, text, bytes(2000))


SEQ = ["seq", "q", 1, 0]
FIELDS = [[["seq", "q", 2, 0]], [["seq", "f", 1, 0]]]
FIELDS += [[SEQ, ["wait_ns", "f", 1, 8]], [SEQ, ["wait_ns", "q", 2, 8]]]


@pytest.mark.parametrize("fields", FIELDS)
@pytest.mark.parametrize("first_seq", [1, 2**64 - 1])
@pytest.mark.parametrize("capacity", [3, 2**32 - 1])
def test_plausible_headers_with_absurd_numbers(tmp_path, fields, first_seq, capacity):
    """Terabytes promised, numbers beyond an int64, a `seq` that is an array or a float."""
    text = json.dumps(["batch", 1, fields]).encode()
    header = FORMAT_VERSION, HEADER_BYTES, 1 << 15, capacity, first_seq, 2**64 - 1, len(text)
    body = struct.pack("<q", 1).ljust(1 << 15, b"\0") * 3
    assert columns_of(tmp_path, header, text, body).rows <= 3
