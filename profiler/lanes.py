"""Lanes: append-only files of fixed-size records that survive `kill -9` and never tear.

A lane is a row of segment files `NAME-000000.seg`, `NAME-000001.seg`, … Each has a 4,096-byte header (magic, format
version, record size, capacity, number of the first record, count of committed records, the schema as JSON) and then
its records. A record is written first and counted after, so a reader that reads the count and then the records sees
whole records only. Bytes are in the kernel's hands as soon as they are written: killing the process loses none.

Where the file system reserves space for good (ext4, xfs, tmpfs, overlay, …) the segment is reserved first and then
mapped, so that a full disk shows at reservation and never as a bus error in the middle of training. Elsewhere (NFS,
ZFS, btrfs, FUSE, other platforms) the same file is written with `pwrite`, slower but just as safe.

A lane belongs to one thread. It takes no lock and, once open, never raises: a lane that cannot go on stops, tells its
`Notifier` once, and swallows what follows.
"""

from __future__ import annotations

import errno
import functools
import json
import mmap
import os
import struct
import sys
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from .hot import LaneState
from .schema import Schema

MAGIC = b"LDRSCOPE"
FORMAT_VERSION = 1
HEADER_BYTES = 4096
# magic, format version, header bytes, record bytes, capacity, first seq, committed, length of the schema JSON
HEADER = struct.Struct("<8sIIIIQQI")
COMMITTED_OFFSET = 32
SCHEMA_OFFSET = 64

FIRST_SEGMENT_BYTES = 64 << 10
SEGMENT_BYTES = 1 << 20

# File systems on which reserved space cannot be lost to others, so that a mapped page can always be written.
# Sources: posix_fallocate(3), tmpfs and ext4 kernel documentation. Copy-on-write and network systems are left out.
RESERVING_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "tmpfs", "overlay", "f2fs", "jfs"})

Notifier = Callable[[str], None]


def map_file(fd: int, size: int) -> memoryview:
    """The file's first `size` bytes, shared and writable, unmapped when the last view of them is gone.

    Unlike Python's own mmap objects before 3.13, this keeps no descriptor: a loader more must not cost one more.
    Raises OSError.
    """
    import ctypes

    libc = _libc()
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    memory = (ctypes.c_char * size).from_address(address)
    finalizer = weakref.finalize(memory, libc.munmap, address, size)
    finalizer.atexit = False  # a thread may still write while the interpreter goes down
    return memoryview(memory).cast("B")


@functools.lru_cache(maxsize=1)
def _libc() -> Any:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


class _Committed(Protocol):
    def __setitem__(self, index: int, value: int, /) -> None: ...


class Segment:
    """One file of a lane, open for writing. `buf` holds header and records; `committed[0] = n` publishes n records."""

    __slots__ = ("buf", "capacity", "committed", "path", "size")

    def __init__(self, path: Path, schema: Schema, size: int, first_seq: int, mapped: bool) -> None:
        """Raises OSError where the file cannot be made or its space not be reserved; leaves no file behind then."""
        self.path = path
        self.size = size
        self.capacity = (size - HEADER_BYTES) // schema.size
        described = json.dumps([schema.name, schema.version, schema.describe()], separators=(",", ":")).encode()
        header = HEADER.pack(
            MAGIC, FORMAT_VERSION, HEADER_BYTES, schema.size, self.capacity, first_seq, 0, len(described)
        )
        header = (header.ljust(SCHEMA_OFFSET, b"\0") + described).ljust(HEADER_BYTES, b"\0")
        if len(header) > HEADER_BYTES:
            raise ValueError(f"the schema of lane {schema.name!r} does not fit the header")
        making = path.with_name(f".{path.name}.{os.getpid()}")  # it appears complete, by one rename
        fd = os.open(making, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            self.buf: memoryview | bytearray
            self.committed: _Committed
            blanks = _blanks(schema, self.capacity)
            if mapped:
                os.posix_fallocate(fd, 0, size)
                # Written before it is mapped: that brings the pages in at a third of the cost of as many page faults.
                _write_all(fd, [header, blanks])
                self.buf = map_file(fd, size)
                # memoryview.cast stores a native 8-byte word in one go; the header is declared little-endian.
                self.committed = self.buf[COMMITTED_OFFSET : COMMITTED_OFFSET + 8].cast("Q")
            else:
                _write_all(fd, [header, blanks])
                self.buf = bytearray(header + blanks)
                self.committed = _WrittenCount(os.dup(fd), self.buf, schema.size)
            os.rename(making, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(making)
            raise
        finally:
            os.close(fd)

    def sync(self, start: int, length: int) -> None:
        """Bring bytes patched after their commit to the file; nothing to do where the file is mapped."""
        if isinstance(self.committed, _WrittenCount):
            self.committed.write(start, length)


def _write_all(fd: int, parts: list[bytes]) -> None:
    # Gathered by the kernel: joining them first would touch a fresh mebibyte of memory each time.
    if os.writev(fd, parts) != sum(map(len, parts)):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@functools.lru_cache(maxsize=8)
def _blanks(schema: Schema, count: int) -> bytes:
    return schema.blank * count


class _WrittenCount:
    """Stands where the mapped count would, and writes the newest record and the count with `pwrite`."""

    def __init__(self, fd: int, buf: bytearray, record_bytes: int) -> None:
        self._fd = fd
        self._buf = buf
        self._record_bytes = record_bytes
        self.failed: OSError | None = None

    def __setitem__(self, index: int, value: int) -> None:
        start = HEADER_BYTES + (value - 1) * self._record_bytes
        self.write(start, self._record_bytes)
        if self.failed is None:
            struct.pack_into("<Q", self._buf, COMMITTED_OFFSET, value)
            self.write(COMMITTED_OFFSET, 8)

    def write(self, start: int, length: int) -> None:
        try:
            os.pwrite(self._fd, memoryview(self._buf)[start : start + length], start)
        except OSError as error:
            self.failed = error

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._fd)


class Budget:
    """The bytes a process may keep on disk for a run; beyond them, the oldest sealed segments are folded."""

    def __init__(self, max_bytes: int, share: Callable[[], int] = lambda: 1) -> None:
        """`share()` says how many recording processes divide `max_bytes` among them."""
        self.max_bytes = max_bytes
        self.used = 0
        self._share = share
        self._sealed: deque[tuple[Path, int, Callable[[Path], None]]] = deque()

    def seal(self, path: Path, size: int, fold: Callable[[Path], None]) -> None:
        """Offer a full segment for folding, should room be needed."""
        self._sealed.append((path, size, fold))

    def admit(self, size: int) -> bool:
        """Make room for `size` bytes; False when that is impossible."""
        allowed = self.max_bytes // max(1, self._share())
        while self.used + size > allowed and self._sealed:
            path, freed, fold = self._sealed.popleft()
            fold(path)
            with suppress(OSError):
                os.unlink(path)
            self.used -= freed
        if self.used + size > allowed:
            return False
        self.used += size
        return True


class Lane(LaneState):
    """An open lane. The hot path writes record number `n` of the segment into `buf`, then publishes it:

        n = lane.count
        if n >= lane.capacity:
            n = lane.roll()
        pack_into(lane.buf, HEADER_BYTES + n * lane.size, lane.first + n, ...)
        lane.committed[0] = n + 1
        lane.count = n + 1

    `count` is the whole state, set last: an interrupt between any two lines (Ctrl-C) leaves the lane consistent.
    A stopped lane has a scratch buffer of one record and no capacity, so the hot path needs no test for it.
    """

    __slots__ = (
        "__weakref__",
        "budget",
        "directory",
        "fold",
        "mapped",
        "name",
        "notify",
        "number",
        "schema",
        "segment",
        "size",
        "stopped",
    )

    def __init__(
        self,
        directory: Path,
        name: str,
        schema: Schema,
        budget: Budget,
        notify: Notifier,
        fold: Callable[[Path], None] | None = None,
        mapped: bool | None = None,
    ) -> None:
        self.directory = directory
        self.name = name
        self.schema = schema
        self.budget = budget
        self.notify = notify
        self.fold = fold
        self.mapped = can_map(directory) if mapped is None else mapped
        self.size = schema.size
        self.number = 0  # of the segment to be opened next
        self.stopped: str | None = None
        self.first = 1  # seq of the segment's first record
        self.segment: Segment | None = None
        self.buf: memoryview | bytearray
        self.committed: _Committed
        self._scratch()

    def roll(self) -> int:
        """Open the next segment; returns its record count (0). Never raises an `Exception`."""
        if self.stopped is not None:
            self.count = 0
            return 0
        try:
            self._check_written()
            self._open_next()
        except OSError as error:
            self.stop(f"{error.strerror or error} ({self.directory})")
        except Exception as error:  # a failure of ours must never reach the training loop
            self.stop(f"{type(error).__name__}: {error}")
        return self.count

    def append(self, *values: float) -> int:
        """Write one whole record (all fields after `seq`, in order); returns its offset. Not for hot paths."""
        n = self.count
        if n >= self.capacity:
            n = self.roll()
        offset = HEADER_BYTES + n * self.size
        struct.pack_into(self.schema.format, self.buf, offset, self.first + n, *values)
        self.committed[0] = n + 1
        self.count = n + 1
        return offset

    def patch(self, segment: Segment | None, offset: int, code: str, value: float) -> None:
        """Set one field of a record already committed; `offset` is the field's place in the segment."""
        if segment is not None:
            struct.pack_into("@" + code, segment.buf, offset, value)
            segment.sync(offset, struct.calcsize("@" + code))

    def stop(self, why: str) -> None:
        """Record nothing more, and say so once."""
        if self.stopped is None:
            self.stopped = why
            self._scratch()
            self.notify(f"recording stopped: {why}; training goes on")

    def close(self) -> None:
        """No more records will come: the segment may be folded when room is needed."""
        self._seal()
        self.abandon("closed")

    def abandon(self, why: str) -> None:
        """Forget the files without touching them, as a forked child must; says nothing."""
        self.stopped = self.stopped or why
        self._scratch()

    def _scratch(self) -> None:
        self.segment = None
        self.buf = bytearray(HEADER_BYTES + self.size)
        self.committed = [0]
        self.capacity = self.count = 0

    def _check_written(self) -> None:
        committed = self.segment.committed if self.segment is not None else None
        if isinstance(committed, _WrittenCount) and committed.failed is not None:
            raise committed.failed

    def _seal(self) -> None:
        if self.segment is not None and self.fold is not None:
            self.budget.seal(self.segment.path, self.segment.size, self.fold)

    def _open_next(self) -> None:
        size = min(FIRST_SEGMENT_BYTES << self.number, SEGMENT_BYTES)
        first = self.first + self.count
        self._seal()
        self.segment = None  # sealed once, whatever happens next
        if not self.budget.admit(size):
            raise OSError(0, f"the run's limit of {self.budget.max_bytes >> 20} MiB is reached")
        try:
            segment = self._make(size, first)
        except BaseException:
            self.budget.used -= size
            raise
        self.number += 1
        self.first = first
        self.buf = segment.buf
        self.committed = segment.committed
        self.count = 0
        self.capacity = segment.capacity
        self.segment = segment

    def _make(self, size: int, first: int) -> Segment:
        path = self.directory / f"{self.name}-{self.number:06d}.seg"
        if self.mapped:
            try:
                return Segment(path, self.schema, size, first, mapped=True)
            except OSError as error:
                if error.errno not in _CANNOT_RESERVE:
                    raise
                self.mapped = False
        return Segment(path, self.schema, size, first, mapped=False)


_CANNOT_RESERVE = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENODEV, errno.ENOSYS})


def can_map(directory: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether files of this directory can be reserved and mapped without the risk of a bus error later."""
    if sys.byteorder != "little" or not hasattr(os, "posix_fallocate"):
        return False
    return file_system(directory, mounts) in RESERVING_FILE_SYSTEMS


def file_system(directory: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """Type of the file system that holds `directory` ('ext4', 'nfs4', …), None where the platform does not tell."""
    try:
        where = os.path.realpath(directory)
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, found = -1, None
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].encode().decode("unicode_escape", errors="replace")
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # later mounts cover earlier ones
            best, found = len(point), parts[2]
    return found
