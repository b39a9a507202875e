"""What processes that are forked share with this one, and must not: places in open files, and connections.

An open file has one position for all of them: each would go on reading where another left off, and a data set that
reads `file.seek(…)`, `file.read(…)` would make batches of other samples' bytes, without an error (pytorch#11929). A
worker of a pool that the user's code does not have gives each file that is open for reading a position of its own, the
same as before. What cannot be had twice is looked for while this process fetches: a file open for writing too whose
position moves with each batch, a TCP connection that brings something with each.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

try:
    import fcntl
except ImportError:  # Windows, which does not fork
    fcntl = None  # type: ignore[assignment]

DESCRIPTORS = "/proc/self/fd"
STANDARD = 2  # input, output and errors are no data
LOOKS, AFTER = 3, 1  # batches looked at, after the first, which opens what is opened late
# Where struct tcp_info of Linux (from 4.1 on) has tcpi_bytes_received, 64 bits.
BYTES_RECEIVED = 128

Places = dict[tuple[int, int], tuple[int, str]]  # (descriptor, inode) → how far it is, and its name


def _descriptors() -> Iterator[tuple[int, os.stat_result, int]]:
    """Of this process: (descriptor, what it is, how it was opened)."""
    with suppress(OSError):
        for fd in map(int, os.listdir(DESCRIPTORS)):  # noqa: PTH208
            with suppress(OSError):
                if fd > STANDARD and fcntl is not None:
                    yield fd, os.fstat(fd), fcntl.fcntl(fd, fcntl.F_GETFL)


def read_apart() -> None:
    """In a process that was just forked: files open for reading get a position of their own. Raises OSError where one
    of them cannot be opened again."""
    for fd, what, flags in list(_descriptors()):
        if stat.S_ISREG(what.st_mode) and flags & os.O_ACCMODE == os.O_RDONLY:
            position, inheritable = os.lseek(fd, 0, os.SEEK_CUR), os.get_inheritable(fd)
            new = os.open(f"{DESCRIPTORS}/{fd}", flags | os.O_CLOEXEC)
            try:
                os.lseek(new, position, os.SEEK_SET)
                os.dup2(new, fd, inheritable)
            finally:
                os.close(new)


class SharedFiles:
    """What this process reads from while it fetches and could not be read apart, of one loader."""

    def __init__(self) -> None:
        self._left = AFTER + LOOKS
        self.names: set[str] | None = None  # None: not looked at yet

    def before(self) -> Places | None:
        """A batch is about to be fetched in this process; None where it is not looked at."""
        if not self._left:
            return None
        self._left -= 1
        return places() if self._left < LOOKS else None

    def after(self, before: Places) -> None:
        """The batch was fetched."""
        moved = {name for each, (far, name) in places().items() if each in before and before[each][0] != far}
        self.names = moved if self.names is None else self.names & moved


def places() -> Places:
    """How far files that are open for reading and writing are, and what connections have brought."""
    found: Places = {}
    for fd, what, flags in _descriptors():
        with suppress(OSError):
            if stat.S_ISREG(what.st_mode) and flags & os.O_ACCMODE == os.O_RDWR and not flags & os.O_APPEND:
                found[fd, what.st_ino] = os.lseek(fd, 0, os.SEEK_CUR), Path(f"{DESCRIPTORS}/{fd}").readlink().name
            elif stat.S_ISSOCK(what.st_mode) and (brought := _received(fd)) is not None:
                found[fd, what.st_ino] = brought
    return found


def _received(fd: int) -> tuple[int, str] | None:
    """Bytes that a TCP connection has brought, and where it goes; None of other sockets."""
    with socket.socket(fileno=os.dup(fd)) as opened:
        if opened.family not in (socket.AF_INET, socket.AF_INET6) or opened.type != socket.SOCK_STREAM:
            return None
        facts = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(facts) < BYTES_RECEIVED + 8:
            return None
        host, port, *_ = opened.getpeername()
        return struct.unpack_from("=Q", facts, BYTES_RECEIVED)[0], f"the connection to {host}:{port}"


def connections_of(pids: Sequence[int]) -> set[str]:
    """The TCP connections that these processes have and this one has not."""
    ours, found = _connected(os.getpid()), set()
    for pid in pids:
        found |= {f"{each.ip}:{each.port}" for local, each in _connected(pid).items() if local not in ours}
    return found


def _connected(pid: int) -> dict[Any, Any]:
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        # psutil 6 gave it this name.
        every = getattr(process, "net_connections", None) or process.connections
        return {each.laddr: each.raddr for each in every(kind="tcp") if each.status == psutil.CONN_ESTABLISHED}
    return {}
