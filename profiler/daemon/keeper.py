"""Copies what the training processes of this host record to files, from memory that is mapped here
too.

A training process that is killed loses nothing: the last round comes after its end. See
`store/lanes/block.py`.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from ..base.clock import now_ns
from ..store.lanes.block import CHUNK_HEADER_BYTES, KEPT_OFFSET, SOCKET_NAME, Copier

MESSAGE_BYTES = 4096
LARGEST_CHUNK_BYTES = 64 << 20


class Keeper:
    """The memory received on one socket, from the processes of one run."""

    def __init__(self, run: Path, system: Path, socket_fd: int) -> None:
        """`system`: the sampler's own folder, which holds the socket. `socket_fd`: -1 for none."""
        self._run = run
        self._system = system
        self._socket: socket.socket | None = None
        with suppress(OSError, ValueError):
            self._socket = socket.socket(fileno=socket_fd)
            self._socket.setblocking(False)
        self._kept: list[Copier] = []  # of chunks, which are mapped as long as they are here

    def round(self) -> None:
        """Receive new memory, and copy what is new in all. Never raises an OSError."""
        self._receive()
        now = now_ns()
        for one in self._kept:
            struct.pack_into("=q", one.chunk, KEPT_OFFSET, now)
            one.copy()

    def drop(self, folder: str) -> None:
        """The process of this folder has ended: copy the rest of its memory, and unmap it."""
        self._receive()
        kept, self._kept = self._kept, []
        for one in kept:
            if os.path.basename(one.directory) == folder:
                one.copy()
            else:
                self._kept.append(one)

    def close(self) -> None:
        """One last round."""
        self.round()
        self._kept = []
        if self._socket is not None:
            with suppress(OSError):  # tools that copy a run's folder may stumble over a socket
                os.unlink(self._system / SOCKET_NAME)
            self._socket.close()
            self._socket = None

    def _receive(self) -> None:
        while self._socket is not None:
            try:
                message, fds, _, _ = socket.recv_fds(self._socket, MESSAGE_BYTES, 4)
            except BlockingIOError:
                return
            except OSError:
                self._socket.close()
                self._socket = None
                return
            try:
                # What is not from a process of ours is ignored.
                with suppress(OSError, ValueError, KeyError, TypeError):
                    self._take(message, *fds)
            finally:
                for fd in fds:
                    os.close(fd)

    def _take(self, message: bytes, fd: int) -> None:
        handed = json.loads(message)
        directory, size = self._run / os.path.basename(handed["directory"]), int(handed["bytes"])
        # Memory that can shrink would be a bus error; raises OSError for what is no memfd.
        sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        if CHUNK_HEADER_BYTES <= size <= LARGEST_CHUNK_BYTES and directory.is_dir() and sealed:
            self._kept.append(Copier(memoryview(mmap.mmap(fd, size)), str(directory)))
