"""Open files where several processes fetch from one data set.

An open file has one position for all forked processes: each would go on reading where another left
off, and a data set that seeks and reads would make batches of other samples' bytes, without an
error (pytorch#11929).
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..profiler.record.fetch_probe.positions import DESCRIPTORS, descriptors, is_file

# Where struct tcp_info of Linux (from 4.1 on) has tcpi_bytes_received, 64 bits.
BYTES_RECEIVED = 128


def reopen_files() -> None:
    """In a process that was just forked: files open for reading get a position of their own, the
    same as before. Raises OSError where one of them cannot be opened again."""
    for fd, what, flags in list(descriptors()):
        if is_file(what, flags, os.O_RDONLY):
            position, inheritable = os.lseek(fd, 0, os.SEEK_CUR), os.get_inheritable(fd)
            new = os.open(
                f"{DESCRIPTORS}/{fd}",
                os.O_RDONLY | flags & getattr(os, "O_DIRECT", 0) | os.O_CLOEXEC,
            )
            try:
                os.lseek(new, position, os.SEEK_SET)
                os.dup2(new, fd, inheritable)
            finally:
                os.close(new)


@dataclass(frozen=True)
class Handles:
    """How far files that are open for reading and writing are, and what TCP connections have
    brought, by descriptor and inode: neither can be had twice."""

    files: dict[tuple[int, int], tuple[int, str]]
    connections: dict[tuple[int, int], tuple[int, str]]


class SharedHandles:
    """What a loader is fetched from by this process that forked workers would share with it, found
    in a few fetches."""

    LOOKS = 3

    def __init__(self) -> None:
        self.looks = 0
        self._files: set[str] = set()
        self._connections: set[str] = set()  # that brought something in each fetch
        self._between: set[str] = set()  # and between two
        self._last: Handles | None = None

    def fetched(self, before: Handles, after: Handles) -> None:
        """One batch was fetched in between."""
        self._files |= _moved(before.files, after.files)
        brought = _moved(before.connections, after.connections)
        self._connections = self._connections & brought if self.looks else brought
        if self._last is not None:
            self._between |= _moved(self._last.connections, before.connections)
        self._last = after
        self.looks += 1

    @property
    def why_not_forked(self) -> str | None:
        """Why forked processes could not do what this one does; None where nothing speaks against
        it."""
        shared = self._files
        if self.looks >= self.LOOKS:
            # What ranks tell each other arrives at any time.
            shared = shared | (
                self._connections - self._between if _has_ranks() else self._connections
            )
        names = ", ".join(sorted(shared)[:3])
        return (
            f"workers would share {names}, which this process fetches from: open it in the worker"
            if names
            else None
        )


def _moved(
    before: dict[tuple[int, int], tuple[int, str]], after: dict[tuple[int, int], tuple[int, str]]
) -> set[str]:
    return {name for each, (at, name) in after.items() if each in before and before[each][0] != at}


def _has_ranks() -> bool:
    import torch.distributed

    return torch.distributed.is_available() and torch.distributed.is_initialized()


def handles() -> Handles:
    """Of this process, now."""
    found = Handles({}, {})
    for fd, what, flags in descriptors():
        with suppress(OSError):
            if is_file(what, flags, os.O_RDWR):
                name = Path(os.readlink(f"{DESCRIPTORS}/{fd}")).name  # noqa: PTH115
                found.files[fd, what.st_ino] = os.lseek(fd, 0, os.SEEK_CUR), name
            elif stat.S_ISSOCK(what.st_mode) and (received := _received(fd)) is not None:
                found.connections[fd, what.st_ino] = received
    return found


def _received(fd: int) -> tuple[int, str] | None:
    """Bytes that a TCP connection has brought, and where it goes; None of other sockets."""
    copy = os.dup(fd)
    try:
        connection = socket.socket(fileno=copy)
    except OSError:  # another thread has closed the socket, and the number is a file's by now
        os.close(copy)
        raise
    with connection:
        if (
            connection.family not in (socket.AF_INET, socket.AF_INET6)
            or connection.type != socket.SOCK_STREAM
        ):
            return None
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(facts) < BYTES_RECEIVED + 8:
            return None
        host, port, *_ = connection.getpeername()
        return struct.unpack_from("=Q", facts, BYTES_RECEIVED)[
            0
        ], f"the connection to {host}:{port}"
