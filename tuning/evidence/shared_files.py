"""Open files and connections where several processes fetch from one data set.

An open file has one position for all forked processes: each would go on reading where another left
off, and a data set that seeks and reads would make batches of other samples' bytes, without an
error (pytorch#11929).
"""

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

from ...profiler.record.fetch_probe.positions import (
    DESCRIPTORS,
    Positions,
    descriptors,
    is_file,
    moved,
    positions,
)

# Where struct tcp_info of Linux (from 4.1 on) has tcpi_bytes_received, 64 bits.
BYTES_RECEIVED = 128


def reopen_files() -> None:
    """In a process that was just forked: give files open for reading a position of their own.
    Raises OSError if one cannot be opened again."""
    for fd, what, flags in list(descriptors()):
        if is_file(what, flags, os.O_RDONLY):
            position, inheritable = os.lseek(fd, 0, os.SEEK_CUR), os.get_inheritable(fd)
            direct = flags & getattr(os, "O_DIRECT", 0)
            new = os.open(f"{DESCRIPTORS}/{fd}", os.O_RDONLY | direct | os.O_CLOEXEC)
            try:
                os.lseek(new, position, os.SEEK_SET)
                os.dup2(new, fd, inheritable)
            finally:
                os.close(new)


class SharedHandles:
    """What this process fetches from that forked workers would share, found in a few fetches: files
    open for reading and writing, and TCP connections."""

    LOOKS = 3

    def __init__(self) -> None:
        self.looks = 0
        self._files: set[str] = set()
        self._connections: set[str] = set()  # that brought something in each fetch
        self._between: set[str] = set()  # that brought something between two
        self._before: tuple[Positions, Positions] = ({}, {})
        self._after = self._before

    def begins(self) -> None:
        """A batch is about to be fetched."""
        self._before = handles()
        if self.looks:
            self._between |= moved(self._after[1], self._before[1])

    def ended(self) -> None:
        """It was fetched."""
        self._after = handles()
        fetched, brought = map(moved, self._before, self._after)
        self._files |= fetched
        self._connections = self._connections & brought if self.looks else brought
        self.looks += 1

    @property
    def why_not_forked(self) -> str | None:
        """Why forked processes could not fetch; None if they could."""
        shared = self._files
        if self.looks >= self.LOOKS:
            # What ranks tell each other arrives at any time.
            shared = shared | self._connections - (self._between if _has_ranks() else set())
        names = ", ".join(sorted(Path(each).name for each in shared)[:3])
        return (
            f"workers would share {names}, which this process fetches from: open it in the worker"
            if names
            else None
        )


def _has_ranks() -> bool:
    import torch.distributed

    return torch.distributed.is_available() and torch.distributed.is_initialized()


def handles() -> tuple[Positions, Positions]:
    """Positions of the files of this process that are open for reading and writing, and the bytes
    that its TCP connections have received."""
    connections: Positions = {}
    for fd, what, _ in descriptors():
        with suppress(OSError):
            if stat.S_ISSOCK(what.st_mode) and (received := _received(fd)) is not None:
                connections[fd, what.st_ino] = received
    return positions(os.O_RDWR), connections


def _received(fd: int) -> tuple[int, str] | None:
    """The bytes that a TCP connection has received, and its other end; None for other sockets."""
    copy = os.dup(fd)
    try:
        connection = socket.socket(fileno=copy)
    except OSError:  # another thread has closed the socket, and the number is a file's by now
        os.close(copy)
        raise
    with connection:
        internet = connection.family in (socket.AF_INET, socket.AF_INET6)
        if not internet or connection.type != socket.SOCK_STREAM:
            return None
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(facts) < BYTES_RECEIVED + 8:
            return None
        host, port, *_ = connection.getpeername()
        received = struct.unpack_from("=Q", facts, BYTES_RECEIVED)[0]
        return received, f"the connection to {host}:{port}"
