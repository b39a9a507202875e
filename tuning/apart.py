"""What processes that are forked share with this one and must not, or lack: open files, connections, threads.

An open file has one position for all of them: each would go on reading where another left off, and a data set that
reads `file.seek(…)`, `file.read(…)` would make batches of other samples' bytes, without an error (pytorch#11929). A
worker of a pool that the user's code does not have gives each file that is open for reading a position of its own, the
same as before. What cannot be had twice is looked for while this process fetches: a file open for writing too whose
position moves with each batch, a TCP connection that brings something with each, threads that fetching starts.
"""

from __future__ import annotations

import os
import pickle
import socket
import stat
import struct
import threading
import types
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..profiler.fetch_probe.containers import kind_of
from ..profiler.fetch_probe.positions import DESCRIPTORS, Positions, descriptors, is_file, moved
from ..profiler.guard.static_access import in_class, instance_vars, mro
from .data_state import state_of

LOOKS, AFTER = 3, 1  # batches looked at, after the first, which opens what is opened late
# Where struct tcp_info of Linux (from 4.1 on) has tcpi_bytes_received, 64 bits.
BYTES_RECEIVED = 128


def read_apart() -> None:
    """In a process that was just forked: files open for reading get a position of their own. Raises OSError where one
    of them cannot be opened again."""
    for fd, what, flags in list(descriptors()):
        if is_file(what, flags, os.O_RDONLY):
            position, inheritable = os.lseek(fd, 0, os.SEEK_CUR), os.get_inheritable(fd)
            new = os.open(f"{DESCRIPTORS}/{fd}", os.O_RDONLY | flags & getattr(os, "O_DIRECT", 0) | os.O_CLOEXEC)
            try:
                os.lseek(new, position, os.SEEK_SET)
                os.dup2(new, fd, inheritable)
            finally:
                os.close(new)


def used_here(dataset: Any) -> Any:
    """A data set for use in this process where the user's code uses it in workers alone: what it opens late, workers
    begun later still have to open themselves. Another object with the same attributes, through torch's wrappers. The
    data set itself where it holds more than attributes, or its class looks after its own end: one would end what the
    other has."""
    from torch.utils.data import ConcatDataset, Subset

    cls, held = type(dataset), instance_vars(dataset)
    attributes = in_class(cls, "__dict__")
    more = type(attributes) is not types.GetSetDescriptorType or any(vars(each).get("__slots__") for each in mro(cls))
    if more or in_class(cls, "__del__") is not None:
        return dataset
    try:
        found = object.__new__(cls)
    except TypeError:  # a list, an array, a class of a compiled module
        return dataset
    if cls is Subset:
        held["dataset"] = used_here(held["dataset"])
    elif cls is ConcatDataset:
        held["datasets"] = [used_here(each) for each in held["datasets"]]
    attributes.__get__(found).update(held)
    return found


def left_to_workers(iterator: Any) -> None:
    """What this iterator, which fetched in this process, has opened is closed again, where it used a copy."""
    iterator._dataset_fetcher.dataset = iterator._dataset


class LeftToWorkers(Exception):
    """Fetching in this process opens what workers forked later cannot have beside it."""


@dataclass(frozen=True)
class Opened:
    """Of descriptors and their inodes: how far files open for reading and writing are, and what connections have
    brought; the names of sockets, pipes, files open for writing too, and LMDB's, which are opened once in a process."""

    places: Positions
    alone: dict[tuple[int, int], str]


@dataclass(frozen=True)
class _Before:
    """One fetch."""

    threads: set[threading.Thread]
    changed: bool  # since the batch before
    opened: Opened


class Shared:
    """What fetching in this process needs, of one loader, that workers forked later could not have for themselves."""

    def __init__(self) -> None:
        self._batches = 0
        self._moved: set[str] | None = None  # None: not looked at yet
        self._threads: set[str] = set()
        self._opened: set[str] = set()
        self._state: tuple[int, list[Any]] | None = None  # after which batch
        self._changed = False

    def before(self, loader: Any) -> _Before | None:
        """A batch is about to be fetched in this process; None where it is not looked at."""
        self._batches += 1
        if self._batches > AFTER + LOOKS and self._batches & (self._batches - 1):
            return None
        last, self._state = self._state, None
        changed = last is not None and last[0] == self._batches - 1 and last[1] != state_of(loader)
        return _Before({*threading.enumerate()}, changed, opened())

    def after(self, before: _Before, loader: Any) -> None:
        """The batch was fetched."""
        self._state = self._batches, state_of(loader)
        self._changed = self._changed or before.changed
        self._threads |= {each.name for each in {*threading.enumerate()} - before.threads}
        now = opened()
        self._opened |= {name for each, name in now.alone.items() if each not in before.opened.alone}
        if AFTER < self._batches <= AFTER + LOOKS:
            names = {Path(path).name for path in moved(before.opened.places, now.places)}
            self._moved = names if self._moved is None else self._moved & names

    def why_not_forked(self) -> str | None:
        """Why workers would not do what this process does; None where nothing speaks against them."""
        if self._moved:
            return f"workers would share {_some(self._moved)}, which this process fetches from: open it in the worker"
        if self._changed:
            return "the loop changes the data set between batches, which workers would not see"
        if self._threads:
            return f"fetching starts threads, which workers forked later would lack: {_some(self._threads)}"
        return None

    def why_left(self) -> LeftToWorkers | None:
        """Why this process must not go on fetching what workers fetched; None where it may."""
        return LeftToWorkers(f"fetching opens {_some(self._opened)}") if self._opened else None


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3])


def opened() -> Opened:
    """What this process has open that others cannot have beside it."""
    found = Opened({}, {})
    for fd, what, flags in descriptors():
        with suppress(OSError):
            path = os.readlink(f"{DESCRIPTORS}/{fd}")  # noqa: PTH115
            connected = stat.S_ISSOCK(what.st_mode)
            other = connected or stat.S_ISFIFO(what.st_mode)
            written = is_file(what, flags, os.O_RDWR)
            in_memory = path.startswith(("/memfd:", "/dev/shm/"))
            if other or (written and not in_memory) or kind_of(path) == "lmdb":
                found.alone[fd, what.st_ino] = "a connection" if other else Path(path).name
            place = (os.lseek(fd, 0, os.SEEK_CUR), path) if written else _received(fd) if connected else None
            if place is not None:
                found.places[fd, what.st_ino] = place
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
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return None
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(facts) < BYTES_RECEIVED + 8:
            return None
        host, port, *_ = connection.getpeername()
        return struct.unpack_from("=Q", facts, BYTES_RECEIVED)[0], f"the connection to {host}:{port}"


def why_not_sent(batch: Any, depth: int = 4) -> str | None:
    """Why a worker could not send such a batch: a class in it that cannot be pickled, for which the loop would wait in
    vain. None where nothing speaks against it. Of a list, the first items are looked at."""
    cls = type(batch)
    try:
        pickle.dumps(cls)
    except Exception:
        return f"its batches hold a {cls.__name__}, a class that cannot be pickled: no worker could send them"
    inside = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, list | tuple) else ()
    found = (why_not_sent(each, depth - 1) for each in list(inside)[:16]) if depth else iter(())
    return next((why for why in found if why is not None), None)


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
