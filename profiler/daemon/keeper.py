"""Keeping what the training processes of this host record: their memory is mapped here too, and
copied to their files.

A training process that is killed loses nothing: the last round comes after its end. See `..block`.
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
from ..store.lanes.block import KEPT_OFFSET, SOCKET_NAME, Copier

MESSAGE_BYTES = 4096
LARGEST_CHUNK_BYTES = 64 << 20


class _Kept:
    """A chunk of memory of one process, whose folder it is."""

    def __init__(self, directory: Path, fd: int, size: int) -> None:
        """Raises OSError, or ValueError for memory that is no chunk."""
        self.folder = directory.name
        self.memory = mmap.mmap(fd, size)
        self.chunk = memoryview(self.memory)
        try:
            self.copier = Copier(self.chunk, str(directory))
        except ValueError:
            self.release()
            raise

    def release(self) -> None:
        self.chunk.release()
        self.memory.close()


class Keeper:
    """The memory handed over on one socket, of the processes of one run."""

    def __init__(self, run: Path, system: Path, socket_fd: int | None) -> None:
        """`system`: the sampler's own folder, which holds the socket."""
        self._run = run
        self._system = system
        self._socket: socket.socket | None = None
        if socket_fd is not None:
            with suppress(OSError):
                self._socket = socket.socket(fileno=socket_fd)
                self._socket.setblocking(False)
        self._kept: list[_Kept] = []

    def round(self) -> None:
        """Take what was handed over, and copy what is new. Never raises an OSError."""
        self._receive()
        now = struct.pack("=q", now_ns())
        for one in self._kept:
            one.chunk[KEPT_OFFSET : KEPT_OFFSET + 8] = now
            one.copier.copy()

    def drop(self, folder: str) -> None:
        """The process of this folder has ended: copy what it has left, and let its memory go."""
        self._receive()
        for one in [one for one in self._kept if one.folder == folder]:
            one.copier.copy()
            self._kept.remove(one)
            self._let_go(one)

    def close(self) -> None:
        """One last round."""
        self.round()
        while self._kept:
            self._let_go(self._kept.pop())
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
                if len(fds) == 1:
                    self._take(message, fds[0])
            except (OSError, ValueError, KeyError, TypeError):
                pass  # not from a process of ours
            finally:
                for fd in fds:
                    os.close(fd)

    def _take(self, message: bytes, fd: int) -> None:
        handed = json.loads(message)
        directory, size = self._run / os.path.basename(handed["directory"]), int(handed["bytes"])
        # Memory that can shrink would be a bus error; raises OSError for what is no memfd.
        sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        if 0 < size <= LARGEST_CHUNK_BYTES and directory.is_dir() and sealed:
            self._kept.append(_Kept(directory, fd, size))

    @staticmethod
    def _let_go(one: _Kept) -> None:
        one.copier.release()
        one.release()
