"""The memory of lanes, as it lies between the training process and its keeper (the system sampler).

A *chunk* is a piece of memory of no file (a sealed memfd, which nobody can truncate), mapped by the
training process and by the keeper. It is cut into *blocks*; a block is the window of one lane onto
the end of its newest file: the records that no `pwrite` has brought there yet. The training process
writes records and counts them; it flushes a window that is full itself. The keeper copies what is
new of all windows to the files several times a second, and once more when the training process has
ended, however it ended.

Reading a window that another process writes is guarded by its generation, a sequence lock: odd
while a window changes its place, another number afterwards.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ...base import schema
from ...base.schema import WINDOW_AT as WINDOW_AT
from ...guard.error_origin import forgiving
from .segment_file import SegmentFile, segment_path

# In the folder of the system sampler; datagrams, each with the descriptor of a chunk.
SOCKET_NAME = "keeper"

MAGIC = b"LDRCHUNK"
VERSION = 1
CHUNK_HEADER_BYTES = 4096
# magic, version, process id, bytes, end of the last block, when the keeper was last here (ns)
CHUNK = struct.Struct("=8siiqqq")
USED_OFFSET, KEPT_OFFSET = 24, 32

# generation, committed, first seq, patches, state, record bytes, capacity, number of the file,
# records of the file before the window, capacity of the file, first seq of the file, bytes of the
# block, lane, schema
BLOCK = struct.Struct("=qqqqiiiiqqqq64s16s")
GENERATION, COMMITTED, FIRST, PATCHES = range(4)  # words of 8 bytes
COMMITTED_OFFSET, STATE_OFFSET, SIZE_OFFSET = 8, 32, 72
SMALLEST_BLOCK = 1 << 10

FREE, IN_USE = 0, 1
TRIES = 5

SCHEMAS = {one.name: one for one in (schema.BATCH, schema.EPOCH, schema.WORKER)}


class Head(NamedTuple):
    """The header of a block."""

    generation: int
    committed: int
    first: int
    patches: int
    state: int
    record_bytes: int
    capacity: int
    number: int
    position: int
    file_capacity: int
    file_first: int
    block_bytes: int
    name: bytes
    schema: bytes


class Copier:
    """Brings what is new in one chunk's windows to the files of a process's folder."""

    def __init__(self, chunk: memoryview, directory: str) -> None:
        """Raises ValueError for memory that is no chunk."""
        magic, version, _, size, _, _ = CHUNK.unpack_from(chunk)
        if (magic, version, size) != (MAGIC, VERSION, len(chunk)):
            raise ValueError("not a chunk of this version")
        self.chunk = chunk
        self.directory = directory
        # Block → generation, records and patches on file.
        self._copied: dict[int, tuple[int, int, int]] = {}

    def blocks(self) -> Iterator[int]:
        """Where the blocks begin."""
        (used,) = struct.unpack_from("=q", self.chunk, USED_OFFSET)
        at = CHUNK_HEADER_BYTES
        while at + SMALLEST_BLOCK <= min(used, len(self.chunk)):
            yield at
            (size,) = struct.unpack_from("=q", self.chunk, at + SIZE_OFFSET)
            if size < SMALLEST_BLOCK:
                return
            at += size

    def copy(self) -> None:
        """One round over all blocks. Never raises an OSError: the lane's own writes tell what is
        wrong with a file."""
        for at in self.blocks():
            with forgiving(OSError):
                self._copy_block(at)

    def _head(self, at: int) -> Head:
        return Head(*BLOCK.unpack_from(self.chunk, at))

    def _copy_block(self, at: int) -> None:
        for _ in range(TRIES):
            head = self._head(at)
            seen = head.generation, head.committed, head.patches
            if head.state != IN_USE or self._copied.get(at) == seen:
                return
            kind = SCHEMAS.get(_text(head.schema))
            size = head.record_bytes * head.committed
            if (
                kind is None
                or kind.size != head.record_bytes
                or not 0 < head.committed <= head.capacity
                or WINDOW_AT + size > min(head.block_bytes, len(self.chunk) - at)
            ):
                return
            records = bytes(self.chunk[at + WINDOW_AT : at + WINDOW_AT + size])
            if head.generation & 1 or self._head(at).generation != head.generation:
                continue  # the window was moved on meanwhile
            path = segment_path(self.directory, _text(head.name), head.number)
            file = SegmentFile(path, kind, head.file_capacity, head.file_first)
            file.write(head.position, records, head.position + head.committed, only_more=True)
            self._copied[at] = seen
            self._settle(at, head, file)
            return

    def _settle(self, at: int, head: Head, file: SegmentFile) -> None:
        """Where the window was flushed and moved on while it was being copied, the count that the
        copy has written is too low: what lies before the window's present place is on file."""
        written = head.generation
        for _ in range(TRIES):
            now = self._head(at)
            if now.generation == written or now.name != head.name:
                return
            written = now.generation
            file.write(
                file.capacity, b"", min(file.capacity, now.first - file.first_seq), only_more=True
            )


def _text(name: bytes) -> str:
    return name.rstrip(b"\0").decode("ascii", "replace")
