"""How a record's fields become bytes: nothing else knows a struct format or an offset of one.

The compiled form of the hot path gets the places of the fields (`native/form.py`); everything in
Python asks here, by the names in `schema`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from .schema import BATCH, EPOCH, Schema

Buffer = Any  # bytearray or memoryview: one that can be written to


class Part:
    """Fields that follow one another in a record, written, read and replaced together."""

    __slots__ = ("_at", "_struct", "put")

    put: Callable[..., None]  # (buffer, where the record begins in it, a value for each field)

    def __init__(self, first: str, last: str | None = None, schema: Schema = BATCH) -> None:
        names = [field.name for field in schema.fields]
        fields = schema.fields[names.index(first) : names.index(last or first) + 1]
        self._at = schema.offset(first)
        self._struct = struct.Struct("@" + "".join(field.code for field in fields))
        end = schema.offset(fields[-1].name) + struct.calcsize("@" + fields[-1].code)
        if self._at + self._struct.size != end:
            raise ValueError(
                f"{first} to {last} of a {schema.name} record do not lie as one struct does"
            )
        # Of fields at the record's beginning, what every batch calls: no function of ours in
        # between.
        self.put = self._put if self._at else self._struct.pack_into

    def _put(self, buffer: Buffer, record: int, *values: float) -> None:
        self._struct.pack_into(buffer, record + self._at, *values)

    def get(self, buffer: Buffer, record: int) -> tuple[Any, ...]:
        """The values in the record that begins there."""
        return self._struct.unpack_from(buffer, record + self._at)

    def patch(self, record: int, *values: float) -> tuple[int, bytes]:
        """What `Window.patch` takes to replace the values in the record that begins there."""
        return record + self._at, self._struct.pack(*values)


# Written for every batch, in one call: seq, t, wait, index, fetch, collate, samples, epoch.
HEAD = Part("seq", "epoch")
# All of a batch that came from a worker, in one call.
RECEIVED = Part("seq", "sample_max_ns")
# Of a batch made in this process and looked at in detail: CPU times, size, own cost, single
# samples.
DETAIL = Part("fetch_cpu_ns", "sample_max_ns")

WAIT, INDEX, COMPUTE = Part("wait_ns"), Part("index_ns"), Part("compute_ns")
PIN, OWN = Part("pin_ns"), Part("own_ns")
TASK, DIGEST = Part("task"), Part("digest")

COPIES, COPIES_NS = Part("h2d_copies"), Part("h2d_ns")
COPIES_HOST = Part("h2d_host_ns", "h2d_bytes")
COPIES_WAYS = Part("h2d_pinned", "h2d_blocking")
ON_DEVICE = Part("compute_device_ns", "stall_ns")

# Of an iteration's row, what becomes known later.
FIRST, END, BATCHES, HOW = (
    Part(name, schema=EPOCH) for name in ("t_first_ns", "t_end_ns", "batches", "how")
)
