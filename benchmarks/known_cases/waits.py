"""Loops that wait: for a lock, a server, a child, a disk. Whether more workers help depends on what
is waited for."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .case import HABITS, Case, Training
from .materials import takes

LENGTH, SIZE = 4_000, 8
LATENCY_S = 0.002
TABLES = 150


class Waiting(Dataset):
    """Each sample waits in one way, or with `fast` as an engineer would have it."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.row = torch.arange(64.0)

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        self.wait(index)
        return self.row + index

    def wait(self, index: int) -> None:
        raise NotImplementedError


class Guarded(Waiting):
    """One lock for all workers, though nothing is shared."""

    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.lock = multiprocessing.Lock()

    def wait(self, index: int) -> None:
        if self.fast:
            time.sleep(LATENCY_S)
        else:
            with self.lock:
                time.sleep(LATENCY_S)


class GuardedWork(Guarded):
    def wait(self, index: int) -> None:
        if self.fast:
            compute()
        else:
            with self.lock:
                compute()


def compute(rounds: int = 40_000) -> int:
    return sum(n * n for n in range(rounds))


class Threaded(Waiting):
    """Four threads a process, which take turns: each process has a lock of its own."""

    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.pool: Any = None
        self.lock: Any = None

    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        if self.pool is None:
            self.pool, self.lock = ThreadPoolExecutor(4), threading.Lock()
        return list(self.pool.map(self.__getitem__, indices))

    def wait(self, index: int) -> None:
        with self.lock:
            time.sleep(LATENCY_S)


class Slept(Waiting):
    def wait(self, index: int) -> None:
        time.sleep(LATENCY_S)


def serve(listening: socket.socket) -> None:
    def answer(connection: socket.socket) -> None:
        while connection.recv(16):
            time.sleep(LATENCY_S)
            connection.sendall(b"x" * 64)

    while True:
        connection, _ = listening.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


@cache
def server() -> tuple[str, int]:
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    multiprocessing.get_context("fork").Process(
        target=serve, args=(listening,), daemon=True
    ).start()
    address: tuple[str, int] = listening.getsockname()
    return address


class Served(Waiting):
    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.address, self.connections = server(), dict[int, socket.socket]()

    def wait(self, index: int) -> None:
        if os.getpid() not in self.connections:
            self.connections[os.getpid()] = socket.create_connection(self.address)
        connection = self.connections[os.getpid()]
        connection.sendall(b"?")
        connection.recv(64, socket.MSG_WAITALL)


class Called(Waiting):
    """A program is run for each sample."""

    def wait(self, index: int) -> None:
        if not self.fast:
            subprocess.run(["sleep", "0.004"], check=True)


@cache
def database() -> str:
    path = str(Path(tempfile.mkdtemp(prefix="known-answers-"), "samples.db"))
    with sqlite3.connect(path) as opened:
        for n in range(TABLES):  # which every opening reads
            opened.execute(f"create table part{n} (id integer primary key, a text, b text, c text)")
        opened.execute("create table samples (id integer primary key, value real)")
        opened.executemany("insert into samples values (?, ?)", ((n, n / 7) for n in range(LENGTH)))
    return path


class Opened(Waiting):
    """A database is opened for each sample."""

    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.path, self.opened = database(), dict[int, sqlite3.Connection]()

    def wait(self, index: int) -> None:
        if not self.fast:
            with sqlite3.connect(self.path) as opened:
                self.value(opened, index)
            opened.close()
            return
        if os.getpid() not in self.opened:
            self.opened[os.getpid()] = sqlite3.connect(self.path)
        self.value(self.opened[os.getpid()], index)

    def value(self, opened: sqlite3.Connection, index: int) -> float:
        (value,) = opened.execute("select value from samples where id = ?", (index,)).fetchone()
        return float(value)


@cache
def packed_files() -> tuple[str, ...]:
    folder = Path(tempfile.mkdtemp(prefix="known-answers-"))
    values = np.random.default_rng(0).integers(0, 60, 400_000).astype(np.uint8).tobytes()
    for n in range(64):
        (made := folder / f"{n}.gz").write_bytes(gzip.compress(values, 1))
        for other in range(64, LENGTH - n, 64):  # a name of its own for each sample
            (folder / f"{n + other}.gz").hardlink_to(made)
    os.sync()
    return tuple(str(folder / f"{n}.gz") for n in range(LENGTH))


class Unpacked(Waiting):
    """Compressed files that the page cache does not hold."""

    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.files = packed_files()

    def wait(self, index: int) -> None:
        path = self.files[index]
        with gzip.open(path) as file:
            file.read()
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


class Products(Waiting):
    """Linear algebra with ten threads in each worker."""

    def __init__(self, fast: bool) -> None:
        super().__init__(fast)
        self.matrix = torch.randn(320, 320)

    def wait(self, index: int) -> None:
        product = self.matrix * torch.rand(())  # another in each epoch
        for _ in range(6):
            product = product @ self.matrix


def ten_threads(worker: int) -> None:
    torch.set_num_threads(10)


def loop(
    kind: type[Waiting],
    num_workers: int,
    fast: bool = False,
    batched: bool = True,
    **arguments: Any,
) -> Training:
    loader = DataLoader(kind(fast), SIZE, shuffle=True, num_workers=num_workers, **arguments)
    return Training(loader, takes(1), size=SIZE)


def case(
    name: str,
    about: str,
    kind: type[Waiting],
    workers: int,
    causes: tuple[str, ...],
    fix: dict[str, Any],
    forbidden: tuple[str, ...] = HABITS,
    quick: bool = False,
) -> Case:
    def build(fast: bool = False, num_workers: int = workers) -> Training:
        return loop(kind, num_workers, fast)

    return Case(name, about, build, causes, fix, forbidden, quick=quick, record_s=6.0)


def products(worker_init_fn: Any = ten_threads) -> Training:
    return loop(Products, 2, worker_init_fn=worker_init_fn)


MORE, BY_HAND = ("num-workers",), ("hot-function",)
CASES = (
    case(
        "shared-lock",
        "four workers wait for one lock, held while sleeping",
        Guarded,
        4,
        BY_HAND,
        {"fast": True},
        (*HABITS, *MORE),
        quick=True,
    ),
    case(
        "shared-lock-computes",
        "four workers wait for one lock, held while computing",
        GuardedWork,
        4,
        (*BY_HAND, *MORE),
        {"fast": True, "num_workers": 2},
    ),
    case(
        "threads-lock", "threads of each process take turns", Threaded, 0, MORE, {"num_workers": 8}
    ),
    case("slept", "each sample sleeps", Slept, 0, MORE, {"num_workers": 8}),
    case(
        "served",
        "a server on this machine answers late",
        Served,
        0,
        (*MORE, *BY_HAND),
        {"num_workers": 8},
    ),
    case(
        "called", "a program is run for each sample", Called, 0, (*MORE, *BY_HAND), {"fast": True}
    ),
    case("opened", "a database is opened for each sample", Opened, 0, BY_HAND, {"fast": True}),
    case(
        "unpacked-cold",
        "compressed files are read from the disk",
        Unpacked,
        0,
        (*MORE, *BY_HAND, "page-cache"),
        {"num_workers": 2},
        (),
    ),
    Case(
        "ten-threads",
        "ten library threads in each of two workers",
        products,
        ("thread-oversubscription",),
        {"worker_init_fn": None},
        (*HABITS, *MORE),
    ),
)
