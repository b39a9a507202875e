"""Lanes: append-only files of fixed-size records that survive `kill -9` and never tear.

A lane is a row of segment files (see `segment_file`). What the loop writes goes to a *window* in
memory: a block of this process's `Arena`, which the keeper (the system sampler) maps too, and
copies to the files several times a second and once more when this process has ended, however that
came. A window that is full is flushed here, by one `pwrite` for some hundred batches, and used
again. So the loop makes no system call, nothing is lost with a killed process, and no file is ever
mapped: to truncate or remove one causes an error at worst, never a bus error in the middle of
training.

Where there is no keeper (no Linux, the sampler switched off or gone), each record is written to the
file at once.

A lane belongs to one thread. It takes no lock and, once open, never raises an `Exception`: a lane
that cannot go on stops, tells its `Notifier` once, and swallows what follows.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.batch_record import OWN
from ...base.clock import thread_cpu_ns
from ...base.schema import BATCH, Schema
from ...guard.error_origin import forgiving, is_ours
from ...native.form import LaneState
from .block import WINDOW_AT as WINDOW_AT
from .segment_file import HEADER_BYTES, SegmentFile, segment_path

if TYPE_CHECKING:
    from .arena import Arena, Block

FIRST_SEGMENT_BYTES = 64 << 10
SEGMENT_BYTES = 1 << 20

# A window's block. The first is small, for there may be thousands of lanes with a few records each;
# a lane that goes on gets larger ones, until flushing (some 40 µs) costs little for its batches.
FIRST_BLOCK_BYTES = 1 << 10
BLOCK_GROWTH = 4
LARGEST_BLOCK_BYTES = 1 << 17

Notifier = Callable[[str], None]
Patches = Iterable[tuple[int, bytes]]


class Window:
    """Some records of a lane: in memory as long as the lane writes there, afterwards in a file."""

    __slots__ = ("block", "buf", "failed", "file", "position")

    def __init__(
        self, file: SegmentFile, position: int, buf: memoryview | bytearray, block: Block | None
    ) -> None:
        self.file = file
        self.position = position  # records of the file before these
        self.buf: memoryview | bytearray | None = buf
        self.block = block
        self.failed: OSError | None = None

    def __setitem__(self, index: int, value: int) -> None:
        """Where nobody keeps the memory, this stands in place of the shared count, and writes the
        newest record and the count at once. No descriptor is held: another loader must not cost
        another one."""
        assert self.buf is not None
        size = self.file.schema.size
        at = WINDOW_AT + (value - 1) * size
        try:
            record = memoryview(self.buf)[at : at + size]
            self.file.write(self.position + value - 1, record, self.position + value)
        except OSError as error:
            if not is_ours(error):
                raise
            self.failed = error

    def patch(self, patches: Patches) -> None:
        """Replace bytes of records already counted; offsets are those in the window. Nothing where
        they are gone."""
        if self.buf is not None:
            for offset, data in patches:
                self.buf[offset : offset + len(data)] = data
            if self.block is not None:
                self.block.patched()
                return
        shift = HEADER_BYTES - WINDOW_AT + self.position * self.file.schema.size
        with forgiving(OSError):
            self.file.patch([(offset + shift, data) for offset, data in patches])


class Budget:
    """The bytes a process may keep on disk for a run; beyond them, the oldest sealed segments are
    removed."""

    def __init__(
        self, max_bytes: int, share: Callable[[], int] = lambda: 1, least_bytes: int = 0
    ) -> None:
        """`share()` says how many recording processes divide `max_bytes`; each has at least
        `least_bytes`."""
        self.max_bytes = max_bytes
        self.least_bytes = least_bytes
        self.used = 0
        self._share = share
        self._sealed: deque[tuple[str, int]] = deque()

    def seal(self, path: str, size: int) -> None:
        """Offer a full segment for removal, should room be needed."""
        self._sealed.append((path, size))

    def admit(self, size: int) -> bool:
        """Make room for `size` bytes; False when that is impossible."""
        allowed = max(self.max_bytes // max(1, self._share()), self.least_bytes)
        while self.used + size > allowed and self._sealed:
            path, freed = self._sealed.popleft()
            with forgiving(OSError):
                os.unlink(path)
            self.used -= freed
        if self.used + size > allowed:
            return False
        self.used += size
        return True


class Lane(LaneState):
    """An open lane. The hot path writes record number `n` of the window into `buf`, then publishes
    it:

        n = lane.count
        if n >= lane.capacity:
            n = lane.roll()
        HEAD.put(lane.buf, lane.at(n), lane.first + n, ...)
        lane.committed[0] = n + 1
        lane.count = n + 1

    `count` is the whole state, set last: an interrupt between any two lines (Ctrl-C) leaves the
    lane consistent. A stopped lane has a scratch buffer of one record and no capacity, so the hot
    path needs no test for it.
    """

    __slots__ = (
        "__weakref__",
        "admitted",
        "arena",
        "budget",
        "directory",
        "file",
        "moved_ns",
        "name",
        "notify",
        "number",
        "schema",
        "size",
        "stopped",
        "trimmed",
        "window",
    )

    def __init__(
        self,
        directory: Path,
        name: str,
        schema: Schema,
        budget: Budget,
        notify: Notifier,
        trimmed: bool = False,
        arena: Arena | None = None,
    ) -> None:
        """`trimmed`: its oldest segments may make room for new ones. `arena`: whose memory the
        windows are; without one, each record is written to the file at once."""
        self.directory = directory
        self.name = name
        self.schema = schema
        self.budget = budget
        self.notify = notify
        self.trimmed = trimmed
        self.arena = arena
        self.size = schema.size
        self.number = -1  # of the newest segment
        self.admitted = 0  # bytes of it
        self.file: SegmentFile | None = None
        self.window: Window | None = None
        self.stopped: str | None = None
        self.first = 1  # seq of the window's first record
        self.count = 0
        self.moved_ns = 0  # CPU time that moving to this window took: files, memory and all
        self.buf: memoryview | bytearray
        self._scratch()

    def roll(self) -> int:
        """Move the window on; returns how many records it has (0). Never raises an `Exception`."""
        if self.stopped is not None:
            self.count = 0
            return 0
        began = thread_cpu_ns()  # of which the wait for a core that others use is no part
        try:
            self._move_on()
            self.moved_ns = thread_cpu_ns() - began
            if self.schema is BATCH:  # what recording this batch cost begins with it
                OWN.put(self.buf, self.at(0), self.moved_ns)
        except Exception as error:  # a failure of ours must never reach the training loop
            if not is_ours(error):
                raise
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError):
                why = f"{error.strerror or error} ({self.directory})"
            self.stop(why)
        return self.count

    def append(self, *values: float) -> int:
        """Write one whole record (all fields after `seq`, in order); returns its offset. Not for
        hot paths."""
        n = self.count
        if n >= self.capacity:
            n = self.roll()
        offset = self.at(n)
        struct.pack_into(self.schema.format, self.buf, offset, self.first + n, *values)
        self.committed[0] = n + 1
        self.count = n + 1
        return offset

    def cost_before(self, n: int) -> int:
        """What recording number `n` of the window had cost (ns) before its batch was looked at:
        that of moving on."""
        return 0 if n else self.moved_ns

    def at(self, n: int) -> int:
        """Where record number `n` of the window begins in `buf`."""
        return WINDOW_AT + n * self.size

    def stop(self, why: str) -> None:
        """Record nothing more, and say so once."""
        if self.stopped is None:
            self.stopped = why
            self._scratch()
            self.notify(f"recording stopped: {why}; training goes on")

    def close(self) -> None:
        """No more records will come."""
        with forgiving(OSError):
            self._flush()
            self._seal()
        self.stopped = self.stopped or "closed"
        self._scratch()

    def abandon(self, why: str) -> None:
        """Forget files and memory without touching them, as a forked child must; says nothing."""
        self.stopped = self.stopped or why
        self.arena = None
        self._scratch()

    def _scratch(self) -> None:
        self._leave(None)
        self.file = None
        self.buf = bytearray(WINDOW_AT + self.size)
        self.committed = [0]
        self.capacity = self.count = 0

    def _leave(self, kept: Block | None) -> None:
        """The window so far is done with, and on file; its memory goes back, but for a block that
        is kept."""
        window, self.window = self.window, None
        if window is not None:
            block = window.block
            window.buf = window.block = None
            if block is not None and block is not kept and self.arena is not None:
                self.arena.release(block, self.first + self.count)

    def _flush(self) -> None:
        """Bring the window's records to the file. Raises OSError."""
        window = self.window
        if window is None or not self.count:
            return
        if window.block is None:
            if window.failed is not None:
                raise window.failed
            return
        records = memoryview(self.buf)[WINDOW_AT : WINDOW_AT + self.count * self.size]
        try:
            window.file.write(window.position, records, window.position + self.count)
        except FileNotFoundError:
            # Somebody has removed it: the records that are here begin another one.
            if not window.position:
                raise
            self.file = None
            window.file, window.position = self._new_file(self.first), 0
            window.file.write(0, records, self.count)

    def _seal(self) -> None:
        if self.file is not None and self.trimmed:
            self.budget.seal(self.file.path, self.admitted)
        self.file = None  # sealed once, whatever happens next

    def _new_file(self, first_seq: int) -> SegmentFile:
        size = min(FIRST_SEGMENT_BYTES << (self.number + 1), SEGMENT_BYTES)
        self._seal()
        self._admit(HEADER_BYTES)
        self.admitted = HEADER_BYTES
        self.number += 1
        path = segment_path(self.directory, self.name, self.number)
        self.file = SegmentFile(path, self.schema, (size - HEADER_BYTES) // self.size, first_seq)
        return self.file

    def _admit(self, size: int) -> None:
        if not self.budget.admit(size):
            raise OSError(0, f"the run's limit of {self.budget.max_bytes >> 20} MiB is reached")

    def _move_on(self) -> None:
        # Interrupted anywhere (by what a signal's handler raises), it can be done again from the
        # beginning.
        self._flush()
        window, first = self.window, self.first + self.count
        file, position = self.file, window.position + self.count if window is not None else 0
        if file is None or position >= file.capacity:
            file, position = self._new_file(first), 0
        block_bytes = self._block_bytes(window)
        capacity = min((block_bytes - WINDOW_AT) // self.size, file.capacity - position)
        self._admit(capacity * self.size)
        self.admitted += capacity * self.size
        block = self._block(window, block_bytes)
        blanks = _blanks(self.schema.blank)[: capacity * self.size]
        if block is None:
            window = Window(file, position, bytearray(WINDOW_AT) + blanks, None)
            if not position:
                file.write(0, b"", 0)  # it is there from now on
            committed: Any = window
        else:
            block.begin(self.name, file, self.number, position, first, capacity, blanks)
            window, committed = Window(file, position, block.buf, block), block.committed
        buf = window.buf
        assert buf is not None
        self._leave(block)
        # `capacity` last: until then the hot path sees a window that is full.
        self.capacity = self.count = 0
        self.window = window
        self.first = first
        self.buf = buf
        self.committed = committed
        self.capacity = capacity

    def _block_bytes(self, window: Window | None) -> int:
        size = FIRST_BLOCK_BYTES if window is None else len(self.buf) * BLOCK_GROWTH
        while size < WINDOW_AT + 2 * self.size:
            size *= 2
        return min(size, LARGEST_BLOCK_BYTES)

    def _block(self, window: Window | None, size: int) -> Block | None:
        """The window's memory from now on: that of before, a larger one, or none where nobody keeps
        it."""
        if self.arena is None:
            return None
        held = window.block if window is not None else None
        if held is not None and held.size == size:
            return held if self.arena.kept() else None
        return self.arena.block(size)


@lru_cache(maxsize=16)
def _blanks(blank: bytes) -> memoryview:
    """As many records with nothing measured as any window has."""
    return memoryview(blank * (LARGEST_BLOCK_BYTES // len(blank)))
