"""Fields of records by name: where they are written is where the schema, and so a reader, says."""

import struct

import numpy as np
import pytest

from loaderscope.profiler.base.batch_record import Part
from loaderscope.profiler.base.schema import BATCH, EPOCH


def test_every_field_is_written_where_it_is_read():
    for schema in (BATCH, EPOCH):
        names = [field.name for field in schema.fields]
        for first in range(len(names)):
            for last in range(first, len(names)):
                try:
                    part = Part(names[first], names[last], schema)
                except ValueError:
                    continue  # with a gap, where one struct would write other places
                record = bytearray(b"\x77" * (16 + schema.size))
                values = np.arange(first + 1, last + 2).tolist()
                part.put(record, 16, *values)
                assert part.get(record, 16) == tuple(values)
                for at, name in enumerate(names):
                    if first <= at <= last:
                        (code,) = (each.code for each in schema.fields if each.name == name)
                        place = 16 + schema.offset(name)
                        assert struct.unpack_from("@" + code, record, place)[0] == at + 1
                at, patch = part.patch(16, *values)
                assert record[at : at + len(patch)] == patch
                assert record[:at] == b"\x77" * at and set(record[at + len(patch) :]) <= {0x77}


def test_fields_with_a_gap_between_them_are_refused():
    with pytest.raises(ValueError, match="as one struct does"):
        Part("epoch", "compute_ns")
