"""The memory that the lanes of this process write into, and handing it to the keeper."""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import threading
import weakref
from pathlib import Path
from typing import Any

from ...base.clock import now_ns
from ...guard.error_origin import forgiving, is_ours
from .block import (
    BLOCK,
    CHUNK,
    CHUNK_HEADER_BYTES,
    COMMITTED,
    COMMITTED_OFFSET,
    FIRST,
    FREE,
    GENERATION,
    IN_USE,
    KEPT_OFFSET,
    MAGIC,
    PATCHES,
    SOCKET_NAME,
    STATE_OFFSET,
    USED_OFFSET,
    VERSION,
    WINDOW_AT,
    Copier,
)
from .segment_file import SegmentFile

FIRST_CHUNK_BYTES = 256 << 10
LARGEST_CHUNK_BYTES = 4 << 20

# The keeper makes a round five times a second. After this long without one, its process is checked.
SILENT_NS = 5_000_000_000

_LONG = struct.Struct("=q")


class Block:
    """One window's memory: `buf` is header and records, `committed[0]` the count that others
    see."""

    __slots__ = ("buf", "committed", "size", "words")

    def __init__(self, chunk: memoryview, at: int, size: int) -> None:
        self.size = size
        self.buf = chunk[at : at + size]
        # memoryview.cast stores a native 8-byte word in one go.
        self.committed = self.buf[COMMITTED_OFFSET : COMMITTED_OFFSET + 8].cast("Q")
        self.words = self.buf[:STATE_OFFSET].cast("q")  # generation, committed, first, patches

    def begin(
        self,
        name: str,
        file: SegmentFile,
        number: int,
        position: int,
        first: int,
        capacity: int,
        blanks: memoryview,
    ) -> None:
        """The window is at another place, with `capacity` blank records: this one of the lane, that
        one of the file."""
        generation = self._moving()
        kind = file.schema
        self.words[COMMITTED] = 0
        self.buf[WINDOW_AT : WINDOW_AT + len(blanks)] = blanks
        BLOCK.pack_into(
            self.buf,
            0,
            generation,
            0,
            first,
            0,
            IN_USE,
            kind.size,
            capacity,
            number,
            position,
            file.capacity,
            file.first_seq,
            self.size,
            name.encode(),
            kind.name.encode(),
        )
        self.words[GENERATION] = generation + 1

    def end(self, following: int) -> None:
        """Nobody's window; whose it was, and how far that lane is on file, can still be seen (see
        `Copier`)."""
        generation = self._moving()
        self.words[FIRST] = following
        struct.pack_into("=i", self.buf, STATE_OFFSET, FREE)
        self.words[GENERATION] = generation + 1

    def _moving(self) -> int:
        """Whoever reads the window from here on sees that it changes: an odd generation."""
        self.words[GENERATION] |= 1
        return self.words[GENERATION]

    def patched(self) -> None:
        """A record that was counted before has changed."""
        self.words[PATCHES] += 1


class Arena:
    """Chunks of memory for the lanes of one process, and their way to the keeper."""

    def __init__(self, directory: Path, keeper: Path | None, keeper_pid: int | None) -> None:
        """`directory` of the process; `keeper`: folder of the system sampler that keeps the memory
        (None: nobody does), and its process id where that is known."""
        self._lock = threading.RLock()
        self._directory = directory
        self._keeper = keeper
        self._keeper_pid = keeper_pid
        self._begun_ns = now_ns()
        self._chunks: list[tuple[memoryview, Copier]] = []
        # Descriptor and bytes of chunks that the keeper could not take yet.
        self._unsent: list[tuple[int, int]] = []
        self._free: dict[int, list[Block]] = {}
        self._next_bytes = FIRST_CHUNK_BYTES
        self._at = self._end = 0

    def block(self, size: int) -> Block | None:
        """A block of this many bytes, a power of two from SMALLEST_BLOCK to half a chunk.

        None where none is to be had, or nobody would keep it: the lane then writes each record to
        its file itself.
        """
        with self._lock:
            if not self.kept():
                return None
            free = self._free.get(size)
            if free:
                return free.pop()
            try:
                if self._at + size > self._end:
                    self._grow()
            except (OSError, ValueError, AttributeError) as error:
                if not is_ours(error):
                    raise
                self._keeper = None
                return None
            chunk, at = self._chunks[-1][0], self._at
            # The size first: a reader walks the blocks up to `used`.
            BLOCK.pack_into(chunk, at, 0, 0, 1, 0, FREE, 0, 0, 0, 0, 0, 0, size, b"", b"")
            self._at += size
            _LONG.pack_into(chunk, USED_OFFSET, self._at)
            return Block(chunk, at, size)

    def release(self, block: Block, following: int) -> None:
        """The window is no longer needed; its records are on file. `following`: the number of the
        lane's next one."""
        block.end(following)
        self._free.setdefault(block.size, []).append(block)

    def flush(self) -> None:
        """Bring all windows to their files now."""
        for _, copier in list(self._chunks):
            copier.copy()

    def kept(self) -> bool:
        """Whether somebody keeps this memory should this process be killed."""
        if self._keeper is None:
            return False
        if self._unsent:
            with self._lock:
                self._send()
        if not self._chunks:
            return True
        (last,) = _LONG.unpack_from(self._chunks[0][0], KEPT_OFFSET)
        silent = now_ns() - max(last, self._begun_ns) > SILENT_NS
        if silent and self._keeper_pid and not os.path.exists(f"/proc/{self._keeper_pid}"):
            self._keeper = None
        return self._keeper is not None

    def abandon(self) -> None:
        """In a forked child: the memory is the parent's."""
        self._lose_keeper()
        self._chunks, self._free = [], {}

    def close(self) -> None:
        """Flush, and release the memory."""
        self.flush()
        self.abandon()

    def _grow(self) -> None:
        size = self._next_bytes
        fd = _sealed_memory(size)
        try:
            chunk = map_memory(fd, size)
            CHUNK.pack_into(chunk, 0, MAGIC, VERSION, os.getpid(), size, CHUNK_HEADER_BYTES, 0)
            self._chunks.append((chunk, Copier(chunk, str(self._directory))))
        except BaseException:
            os.close(fd)
            raise
        self._unsent.append((fd, size))
        self._send()
        self._next_bytes = min(size * 2, LARGEST_CHUNK_BYTES)
        self._at, self._end = CHUNK_HEADER_BYTES, size

    def _send(self) -> None:
        """Chunks to the keeper; those it cannot take now are tried again later."""
        keeper = self._keeper
        while self._unsent and keeper is not None:
            fd, size = self._unsent[0]
            try:
                _send(keeper, {"directory": self._directory.name, "bytes": size}, fd)
            except BlockingIOError:
                return  # it has not started to take them yet
            except OSError as error:
                if not is_ours(error):
                    raise
                # what is in memory until now is flushed when a window is full, and at the end
                self._lose_keeper()
                return
            del self._unsent[0]
            os.close(fd)

    def _lose_keeper(self) -> None:
        self._keeper = None
        for fd, _ in self._unsent:
            with forgiving(OSError):
                os.close(fd)
        self._unsent = []


def _send(keeper: Path, message: dict[str, Any], fd: int) -> None:
    """Raises OSError."""
    folder = os.open(keeper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)
            # The name of a socket has at most 107 bytes; this one is short wherever the folder
            # lies.
            address = f"/proc/self/fd/{folder}/{SOCKET_NAME}"
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))]
            sending.sendmsg([json.dumps(message).encode()], rights, 0, address)
    finally:
        os.close(folder)


def _sealed_memory(size: int) -> int:
    """A descriptor of so much memory, reserved, which nobody can make shorter or longer. Raises
    OSError."""
    import fcntl

    fd = os.memfd_create("loaderscope", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        # Reserved now, so that no later write to it can fail (as a bus error).
        os.posix_fallocate(fd, 0, size)
        fcntl.fcntl(
            fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        )
    except BaseException:
        os.close(fd)
        raise
    return fd


def map_memory(fd: int, size: int) -> memoryview:
    """The first `size` bytes, shared and writable, unmapped when the last view of them is gone.

    Unlike Python's own mmap objects before 3.13, this keeps no descriptor. Raises OSError.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size_t, int_ = ctypes.c_size_t, ctypes.c_int
    libc.mmap.argtypes = [ctypes.c_void_p, size_t, int_, int_, int_, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, size_t]
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    memory = (ctypes.c_char * size).from_address(address)
    finalizer = weakref.finalize(memory, libc.munmap, address, size)
    finalizer.atexit = False  # a thread may still write while the interpreter goes down
    return memoryview(memory).cast("B")
