"""Workers forked beside a process that fetches by itself read the samples they are asked for."""

import gc
import os
import socket
import socketserver
import struct
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope
from loaderscope.profiler.record.fetch_probe.positions import descriptors
from loaderscope.tuning.evidence import shared_files
from loaderscope.tuning.evidence.evidence import Evidence
from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.evidence.shared_files import SharedHandles, _received, handles, reopen_files
from stored_rows import BYTES, LENGTH, Stored, row, store
from switch_data import Script, drive, same, scripted


class Zipped(Stored):
    def read(self, index: int) -> bytes:
        return self.source.read(str(index))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = store(tmp_path_factory.mktemp("stored") / "rows.bin")
    with zipfile.ZipFile(path.with_suffix(".zip"), "w") as file:
        for index in range(LENGTH):
            file.writestr(str(index), row(index))
    return path


TURNS = {6: Settings(2, 3), 20: Settings(0), 28: Settings(3), 45: Settings(1), 60: Settings(2, 3)}


def fetched(loader: Any) -> list[Any]:
    torch.manual_seed(1)
    return [batch for _ in range(2) for batch in loader]


@pytest.mark.parametrize("late", [False, True])
def test_each_worker_reads_where_it_wants(late: bool, rows: Path) -> None:
    """In a plain file and, opened late, an archive. One position would give other samples' bytes."""

    def make(workers: int) -> Any:
        zipped = partial(zipfile.ZipFile, rows.with_suffix(".zip"))
        data = Zipped(zipped, late) if late else Stored(partial(rows.open, "rb"), late)
        return DataLoader(data, batch_size=6, shuffle=True, num_workers=workers)

    bare = fetched(make(0))
    assert {int(each) for batch in bare for each in batch[:, 0]} == set(range(LENGTH))
    # Workers of the user's own that share a position are the user's own.
    for own in (0, 2) if late else (0,):
        loader = make(own)
        script = scripted(loader, TURNS, kept=late)
        assert same(fetched(loader), bare)
        if own:  # what is opened late is left to workers
            why = f"fetching changes {type(loader.dataset).__name__}.source"
            assert {str(each) for each in script.failures} == {why}
        else:
            assert len([each for each in script.events if each[0] != "begun"]) >= 4
            assert not script.failures
        loaderscope.unwatch(loader)


def test_a_file_read_apart_stays_where_it_is(rows: Path) -> None:
    with rows.open("rb", buffering=0) as file, rows.open("ab") as written:
        file.seek(99)
        os.set_inheritable(file.fileno(), True)
        before = written.tell()
        other = os.dup(file.fileno())
        reopen_files()
        assert file.tell() == 99 and os.get_inheritable(file.fileno()) and written.tell() == before
        file.seek(5)
        assert os.lseek(other, 0, os.SEEK_CUR) == 99
        os.close(other)


class Asking(Stored):
    def read(self, index: int) -> bytes:
        self.source.sendall(struct.pack("=q", index))
        return self.source.recv(BYTES, socket.MSG_WAITALL)


class Sending(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while len(asked := self.request.recv(8, socket.MSG_WAITALL)) == 8:
            self.request.sendall(row(*struct.unpack("=q", asked)))


@pytest.fixture
def server() -> Iterator[Any]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sending) as listening:
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        yield listening.server_address
        listening.shutdown()


class Asked(Script):
    """Asks with each batch whether workers are safe."""

    def handed(self, iterator: Any, batch: Any) -> None:
        self.why = iterator.why_not(Settings(2))


def why_not(data: Dataset) -> Any:
    loader = DataLoader(data, batch_size=4)
    asked = Asked(loader, {})
    drive(loader, asked)
    list(loader)
    loaderscope.unwatch(loader)
    return asked.why


def test_what_cannot_be_read_apart_keeps_the_settings(rows: Path, server: tuple[str, int]) -> None:
    written = Stored(lambda: rows.open("r+b", buffering=0), late=True)
    assert "is a file that it may write to" in why_not(written)
    asking = Asking(lambda: socket.create_connection(server), late=True)
    why = why_not(asking)
    assert "workers would share" in why and f"the connection to 127.0.0.1:{server[1]}" in why
    asking.source.close()
    with socket.create_connection(server), rows.open("r+b") as idle:
        assert str(rows) in (path for _, path in handles()[0].values()) and idle.tell() == 0
        assert why_not(Stored(lambda: rows.open("rb"), late=True)) is None


class Pooled(Stored):
    threads: Any = None

    def read(self, index: int) -> bytes:
        if self.threads is None:
            self.threads = ThreadPoolExecutor(1)
        return self.threads.submit(super().read, index).result()


def test_a_worker_that_waits_for_a_thread_it_has_not_never_has_its_turn(rows, monkeypatch):
    """Forked where a pool of threads was begun, it would wait for ever."""
    data = Pooled(lambda: rows.open("rb"), late=False)
    why = "Pooled.threads has threads, which forked processes lack"
    assert why in why_not(data)
    monkeypatch.setattr(Evidence, "why_not", lambda *_: None)  # had nobody seen the threads
    loader = DataLoader(data, batch_size=6)
    script = scripted(loader, {5: Settings(2)}, at_once=False)
    assert [int(each) for batch in loader for each in batch[:, 0]] == list(range(LENGTH))
    assert [made for _, made in script.events] == [Settings(0)] and not script.failures
    loaderscope.unwatch(loader)
    data.threads.shutdown()


class Owned(Stored):
    """What it opens late, one process must not have from another."""

    def read(self, index: int) -> bytes:
        assert self.source.pid == os.getpid(), "opened in another process"
        return row(index)


class Opened:
    def __init__(self) -> None:
        self.pid = os.getpid()

    def close(self) -> None: ...


class OpenOnce(Opened):
    """As LMDB: what a process has open, those that are forked from it cannot open."""

    by: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        super().__init__()
        assert not self.by, "open already"
        self.by.add(self.pid)

    def close(self) -> None:
        self.by.clear()


@pytest.mark.parametrize(
    ("opening", "workers", "then"),
    [
        (Opened, 1, {15: Settings(2)}),
        (OpenOnce, 2, {12: Settings(1)}),  # what workers forked later could not open
    ],
)
def test_what_workers_open_late_is_not_opened_in_the_training_process(opening, workers, then):
    data = Owned(opening, late=True)
    loader = DataLoader(data, batch_size=5, num_workers=workers)
    for _ in range(2):
        script = scripted(loader, {8: Settings(0), **then}, kept=workers > 1)
        assert [int(each) for batch in loader for each in batch[:, 0]] == list(range(LENGTH))
        assert data.source is None
        assert {str(each) for each in script.failures} == {"fetching changes Owned.source"}
        loaderscope.unwatch(loader)


def test_a_connection_counts_that_brings_something_in_each_fetch(monkeypatch):
    def fetched(shared: SharedHandles, *looks: tuple[int, int, int]) -> str | None:
        """How far a file is, and what a server and a rank have sent, before and after a fetch."""
        for step, (file, server, rank) in zip((shared.begins, shared.ended), looks, strict=True):
            found = {1: (server, "server"), 2: (rank, "rank")}
            seen = {0: (file, "rows.bin")}, found
            monkeypatch.setattr(shared_files, "handles", lambda seen=seen: seen)
            step()
        return shared.why_not_forked

    shared = SharedHandles()
    for fetch in range(SharedHandles.LOOKS):
        assert shared.why_not_forked is None
        why = fetched(shared, (0, fetch, 2 * fetch), (0, fetch + 1, 2 * fetch + fetch // 2))
    assert str(why).startswith("workers would share server, which")
    assert "share rows.bin" in str(fetched(SharedHandles(), (0, 0, 0), (512, 0, 0)))


def test_a_socket_that_another_thread_closes_meanwhile_leaves_nothing_open(rows: Path) -> None:
    gc.collect()  # what earlier tests left
    with rows.open("rb") as file:
        before = sorted(fd for fd, *_ in descriptors())
        with pytest.raises(OSError, match="socket"):
            _received(file.fileno())  # the number was a socket's when it was looked at
        assert sorted(fd for fd, *_ in descriptors()) == before
