"""Open files where several processes fetch from one data set.

An open file has one position for all forked processes: each would go on reading where another left off, and a data set
that seeks and reads would make batches of other samples' bytes, without an error (pytorch#11929).
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
    """In a process that was just forked: files open for reading get a position of their own, the same as before. Raises
    OSError where one of them cannot be opened again."""
    for fd, what, flags in list(descriptors()):
        if is_file(what, flags, os.O_RDONLY):
            position, inheritable = os.lseek(fd, 0, os.SEEK_CUR), os.get_inheritable(fd)
            new = os.open(f"{DESCRIPTORS}/{fd}", os.O_RDONLY | flags & getattr(os, "O_DIRECT", 0) | os.O_CLOEXEC)
            try:
                os.lseek(new, position, os.SEEK_SET)
                os.dup2(new, fd, inheritable)
            finally:
                os.close(new)


@dataclass(frozen=True)
class Handles:
    """How far files that are open for reading and writing are, and what TCP connections have brought, by descriptor and
    inode: neither can be had twice."""

    places: dict[tuple[int, int], tuple[int, str]]

    def moved(self, later: Handles) -> str | None:
        """Why forked processes could not do what this one did in between; None where nothing speaks against it."""
        for each, (at, name) in later.places.items():
            if each in self.places and self.places[each][0] != at:
                return f"workers would share {name}, which this process fetches from: open it in the worker"
        return None


def handles() -> Handles:
    """Of this process, now."""
    places = {}
    for fd, what, flags in descriptors():
        with suppress(OSError):
            if is_file(what, flags, os.O_RDWR):
                name = Path(os.readlink(f"{DESCRIPTORS}/{fd}")).name  # noqa: PTH115
                places[fd, what.st_ino] = os.lseek(fd, 0, os.SEEK_CUR), name
            elif stat.S_ISSOCK(what.st_mode) and (received := _received(fd)) is not None:
                places[fd, what.st_ino] = received
    return Handles(places)


def _received(fd: int) -> tuple[int, str] | None:
    """Bytes that a TCP connection has brought, and where it goes; None of other sockets."""
    copy = os.dup(fd)
    try:
        connection = socket.socket(fileno=copy)
    except OSError:  # another thread has closed the socket, and the number is a file's by now
        os.close(copy)
        raise
    with connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return None
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(facts) < BYTES_RECEIVED + 8:
            return None
        host, port, *_ = connection.getpeername()
        return struct.unpack_from("=Q", facts, BYTES_RECEIVED)[0], f"the connection to {host}:{port}"
