"""Looking inside fetching: what is opened, read, held and mounted, when, and the sums on disk."""

import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from loaderscope.profiler.base.mounts import Mounts
from loaderscope.profiler.record.fetch_probe import containers, opened_paths, opens, probe
from loaderscope.profiler.record.fetch_probe.opened_paths import PathSums
from loaderscope.profiler.record.fetch_probe.probe import FetchProbe
from loaderscope.profiler.record.fetch_probe.read_counters import Counters, between, counters
from loaderscope.profiler.store import sampled_fetches as bounds
from loaderscope.profiler.store.probe_totals import (
    MAX_CHARACTERS,
    OTHER,
    ProbeTotals,
    read_fetches,
    read_sampled_fetches,
)
from loaderscope.profiler.store.sampled_fetches import EpochTotals, SampledFetches, SuffixTotals

MS = 1_000_000


@pytest.mark.skipif(opens.native is None, reason="without the extension")
def test_opens_of_this_thread_alone(tmp_path):
    def elsewhere():
        thread = threading.Thread(target=file.read_bytes)
        thread.start()
        thread.join()

    file = tmp_path / "x.bin"
    file.write_bytes(b"abc")
    opens.install()
    file.read_bytes()
    opens.begin(False)
    file.read_bytes()
    handle = os.open(bytes(file), os.O_RDONLY)
    with os.fdopen(handle, "rb") as again:
        again.read()
    file.write_bytes(b"written, not read")
    os.close(os.open(tmp_path / "made", os.O_RDWR | os.O_CREAT | os.O_EXCL))
    with pytest.raises(FileNotFoundError):
        open(tmp_path / "missing")  # noqa: SIM115
    elsewhere()
    sys.audit("open", "too few")
    found = opens.end()
    file.read_bytes()
    assert found == [str(file), bytes(file), str(tmp_path / "missing")]
    assert opens.end() == []
    opens.begin(True)
    elsewhere()
    with opens.also() as found:
        file.read_bytes()
    os.close(os.open(bytes(file), os.O_RDONLY))
    assert found == [str(file)]
    assert opens.end() == [str(file), str(file), bytes(file)]
    with opens.also() as found:
        file.read_bytes()
    file.read_bytes()
    assert found == [str(file)] and opens.end() == []


@pytest.fixture
def mounts(monkeypatch):
    known = [("/", "overlay"), ("/data", "nfs4"), ("/data/with space", "fuse"), ("/data", "lustre")]
    found = [SimpleNamespace(mountpoint=path, fstype=kind) for path, kind in known]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: found)
    return Mounts()


class Named(str):
    """A path that must be asked nothing."""

    def __str__(self):
        raise AssertionError("code of the user's was run")

    startswith = endswith = __hash__ = __eq__ = __str__


def test_what_is_summed_up(tmp_path, mounts, monkeypatch):
    ours, totals = "/dev/shm/runs/p1-0", ProbeTotals()
    paths = PathSums(totals, ours, mounts)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a10.PNG").write_bytes(b"x" * 10)
    opened = ["a10.PNG", b"/data/b.tar.gz", Path("/data/c"), Named("/data/c"), "/x/module.py"]
    opened += ["/proc/self/io", 7, object(), "/dev/null", "/dev/urandom", f"{ours}/looks-0-m.json"]
    assert paths.add(opened, 2) == 4
    assert (totals.opens, totals.distinct, totals.reopened, totals.directories) == (4, 3, 1, 2)
    assert totals.suffixes == {".png": [1, 1, 10, 10], ".tar.gz": [1, 0, 0, 0], "": [2, 0, 0, 0]}
    assert totals.folders == {str(tmp_path): 1, "/data": 3}
    assert totals.mounts == {("/", "overlay"): 1, ("/data", "lustre"): 3}
    assert not totals.containers
    assert totals.different == 3
    paths.add(["a.npz"] * 3 + ["b.npz"], 4)
    assert totals.different == 5
    assert totals.containers == {str(tmp_path / "a.npz"): ("npz", None)}
    # Shared memory holds files as well.
    assert paths.add(["/dev/shm/set/a.png", f"{ours}/looks-0-m.json"], 1) == 1


def test_what_is_remembered_is_bounded(mounts, monkeypatch):
    monkeypatch.setattr(opened_paths, "MAX_KNOWN", 100)
    monkeypatch.setattr(opened_paths, "MAX_DIRECTORIES", 50)
    totals = ProbeTotals()
    paths = PathSums(totals, mounts=mounts)
    paths.add([f"/data/d{i}/f.s{i}" for i in range(300)], 300)
    assert (totals.opens, totals.distinct, totals.reopened) == (300, 100, 0)
    assert (totals.directories, len(totals.folders)) == (100, 50)
    assert len(totals.suffixes) == bounds.MAX_SUFFIXES + 1
    assert totals.suffixes[OTHER][0] == 300 - bounds.MAX_SUFFIXES
    assert len(json.loads(totals.to_json())["folders"]) == bounds.MAX_FOLDERS


def test_our_own_reading_is_no_part_of_it_and_a_kernel_that_does_not_count_says_nothing():
    first, none = Counters(1000, 10, 0, 3, 100), Counters(-1, -1, -1, -1, 0)
    assert between(first, Counters(1100, 11, 0, 3, 99)) == Counters(0, 0, 0, 0)
    assert between(first, Counters(5100, 15, 4096, 5, 99)) == Counters(4000, 4, 4096, 2)
    assert between(Counters(0, 0, 0, 1, 100), Counters(0, 0, 0, 2, 100)) == Counters(-1, -1, -1, 1)
    assert between(none, none) == Counters(-1, -1, -1, -1)


@pytest.mark.parametrize("text", ["", "rchar: x\n", "rchar: 1\nwchar: 2\n", "a b c d e f g h i j"])
def test_counters_of_another_kind(tmp_path, text):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "io").write_text(text)
    assert counters(True, str(tmp_path))[:3] == (-1, -1, -1)


def test_containers_open_or_mapped(tmp_path):
    process, run = tmp_path / "process", tmp_path / "run"
    (process / "fd").mkdir(parents=True)
    opened = ["/d/set.h5", "/d/log.txt", "socket:[1]", "/d/gone.h5 (deleted)", f"{run}/x.tar"]
    for number, target in enumerate([*opened, "/d/small.npy", "/d/rows.sqlite"]):
        (process / "fd" / str(number)).symlink_to(target)
    maps = f"""\
r--p /usr/lib/libc.so.6
r-xp /opt/tool
r--p /opt/tool
r--s /d/store/data.mdb
r--s /d/all.npy
r--s /d/with space.bin
rw-s /dev/shm/torch_1_2
rw-s {run}/a.seg
r--p {sys.prefix}/x.dat
rw-p [heap]
r--s /d/gone.npy (deleted)
rw-p
"""
    parts = (line.partition(" ") for line in maps.splitlines())
    lines = [f"7f00-7f01 {mode} 00000000 00:00 1    {path}\n" for mode, _, path in parts]
    (process / "maps").write_text("".join(lines))
    assert containers.held_containers(str(run), str(process)) == {
        "/d/set.h5": "hdf5",
        "/d/rows.sqlite": "sqlite",
        "/d/store/data.mdb": "lmdb",
        "/d/all.npy": "npy",
        "/d/with space.bin": "memmap",
    }
    assert containers.held_containers("", str(tmp_path / "none")) == {}


def test_a_sparse_lmdb_file_is_as_large_as_what_it_holds(tmp_path):
    file = tmp_path / "data.mdb"
    with file.open("wb") as made:
        made.write(b"x" * 4096)
        made.truncate(1 << 30)
    assert containers.size_of(str(file), "lmdb") == os.stat(file).st_blocks * 512
    assert containers.size_of(str(file), "memmap") == 1 << 30
    assert containers.size_of(str(tmp_path / "none"), "lmdb") is None


def some_totals():
    totals = ProbeTotals()
    totals.batches, totals.samples, totals.fetch_ns, totals.opens = 2, 8, 100, 8
    totals.add_suffix(".png", 8, 4, 400, 120)
    totals.folders["/d"] = 8
    totals.add_mount("/", "ext4", 8)
    totals.add_container("/d/x.tar", "tar", None)
    totals.add_epoch(0, [2, 8, 100, 50, 8, 400, 16, -1, 0])
    totals.reasons["reading"] = "why"
    return totals


def test_there_and_back_and_added_up(tmp_path):
    totals = some_totals()
    (tmp_path / "looks-0-m.json").write_text(totals.to_json())
    looks = read_sampled_fetches(tmp_path, 0, "dataloader", {})
    assert looks == totals.fetches()
    assert looks.suffixes == {".png": SuffixTotals(8, 4, 400, 120)}
    assert looks.epochs == (EpochTotals(0, 2, 8, 100, 50, 8, 400, 16, -1, 0),)
    totals.add(looks)
    assert (totals.samples, totals.suffixes) == (16, {".png": [16, 8, 800, 120]})
    assert totals.epochs == {0: [4, 16, 200, 100, 16, 800, 32, -1, 0]}
    totals.add_epoch(bounds.MAX_EPOCHS + 5, [1] * 9)
    totals.add_epoch(bounds.MAX_EPOCHS + 6, [1] * 9)
    assert totals.epochs[bounds.MAX_EPOCHS - 1] == [2] * 9
    assert read_sampled_fetches(tmp_path / "none", 0, "dataloader", {}) == SampledFetches()
    off = read_sampled_fetches(tmp_path / "none", 0, "dataloader", {"looks": "off"})
    assert off.reasons == {"looks": "off"}


def test_workers_share_what_they_read_not_what_they_map(tmp_path):
    for worker in range(2):
        totals = some_totals()
        totals.add_container("/d/tokens.bin", "memmap", 100)
        (tmp_path / f"looks-0-w{worker}.json").write_text(totals.to_json())
    assert read_sampled_fetches(tmp_path, 0, "dataloader", {}).shared == 1


def test_a_file_is_bounded(tmp_path):
    totals = some_totals()
    for i in range(2000):
        name = f"/{i}" + "ü" * 400
        totals.folders[name] = 1
        totals.add_container(name, "tar", 1)
        totals.add_mount(name, "ext4", 1)
    text = totals.to_json()
    assert len(text) <= MAX_CHARACTERS
    (tmp_path / "looks-0-m.json").write_text(text)
    assert read_fetches(tmp_path / "looks-0-m.json").opens == 8


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\x00", b'{"format": 2, "opens": 5}'])
def test_torn_and_foreign_files_count_for_nothing(tmp_path, content):
    (tmp_path / "looks-3-w0.json").write_bytes(content)
    for name in ("looks-3-w1.json", "looks-30-w1.json", ".looks-3-w1.json.77"):
        (tmp_path / name).write_text(some_totals().to_json())
    (tmp_path / "looks-3-m.json").mkdir()
    assert read_sampled_fetches(tmp_path, 3, "dataloader", {}).opens == 8


class Host:
    """A clock that is set, and counters that say how much was read."""

    now, read, counting = 0, 0, True

    def counters(self, whole):
        return Counters(self.read, 0, 0, 0, 0) if self.counting else Counters(-1, -1, -1, 0, 0)


@pytest.fixture
def host(monkeypatch):
    host = Host()
    monkeypatch.setattr(probe, "now_ns", lambda: host.now)
    monkeypatch.setattr(probe, "counters", host.counters)
    monkeypatch.setattr(probe, "held_containers", lambda without: {})
    ours = ["/proc/self/io"]  # our own open, which shows that the hook works
    for name, value in (("_installed", True), ("begin", lambda whole: None), ("end", lambda: ours)):
        monkeypatch.setattr(opens, name, value)
    return host


@pytest.fixture
def one(tmp_path):
    (tmp_path / "p").mkdir()
    return FetchProbe(tmp_path / "p" / "looks-0-m.json")


def batches(host, one, number, read=100, fetch_ns=10 * MS):
    """Loop over so many batches looked at in detail; returns which were looked inside."""
    looked = []
    for i in range(number):
        wanted = one.wants() and one.begin(4)
        host.now += fetch_ns
        host.read += read
        if wanted:
            looked.append(i)
            one.end(fetch_ns, 0)
            one.settle()
    return looked


def test_the_first_and_then_one_in_sixteen(tmp_path, host, one):
    assert batches(host, one, 60) == [0, 1, 2, 3, 4, 5, 21, 37, 53]
    later = FetchProbe(tmp_path / "p" / "looks-0-w0.json", 3, in_worker=True)
    assert batches(host, later, 40) == [0, 1, 17, 33]


def test_looks_take_a_thousandth_of_the_time_and_each_epoch_is_looked_at(host, one):
    batches(host, one, 6)
    one.epoch = 1
    assert batches(host, one, 4) == [0, 1]
    assert [*one.totals.epochs] == [0, 1]
    one.epoch = bounds.MAX_EPOCHS  # all later epochs are one
    assert batches(host, one, 4) == []
    one._own_ns = 10 * MS
    assert batches(host, one, 900) == []  # nine seconds
    assert len(batches(host, one, 200)) >= 1


def test_one_look_at_a_time_and_one_given_up_counts_for_nothing(tmp_path, host, one):
    two = FetchProbe(tmp_path / "p" / "b.json")
    assert one.begin(4)
    assert not two.begin(4)
    two.abandon()
    assert not two.begin(4)
    one.abandon()
    one.end(5, 5)
    one.settle()
    assert one.totals.batches == 0
    assert one.begin(4)
    one.end(5, 5)
    assert two.begin(4)
    two.abandon()


def test_a_failure_of_ours_ends_the_looking_and_says_why(tmp_path, host, one, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(probe, "_Sample", lambda *given: 1 // 0)
        assert not one.begin(4)
    assert not one.wants()
    one.close()
    reasons = read_sampled_fetches(tmp_path / "p", 0, "dataloader", {}).reasons
    assert "ZeroDivisionError: " in reasons["looks"]
    assert FetchProbe(tmp_path / "p" / "x.json").begin(1)
    probe._let_go()


def test_an_interrupt_leaves_nothing_behind(host, one, monkeypatch):
    with monkeypatch.context() as handler:
        handler.setattr(probe, "_Sample", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            one.begin(4)
    assert one.begin(4)
    one.abandon()


def test_a_child_forked_during_a_look_is_not_looked_at(one):
    assert one.begin(4)
    child = os.fork()
    if child == 0:
        os._exit(0 if one._sample is None and not one.wants() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one._sample is not None
    one.abandon()


def test_without_counters_no_process_gets_a_hook(tmp_path, host, one, monkeypatch):
    host.counting = False
    monkeypatch.setattr(opens, "_installed", False)
    monkeypatch.setattr(opens, "install", pytest.fail)
    batches(host, one, 3)
    assert {"reading", "opens"} == set(one.totals.reasons)
    assert one.totals.epochs[0][4:7] == [-1, -1, -1]
    batches(host, FetchProbe(tmp_path / "p" / "looks-0-w0.json", in_worker=True), 1)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"native": None, "_installed": False}, "compiled extension"),
        ({"end": list}, "another audit hook"),
    ],
)
def test_opens_that_are_not_seen_are_unknown(host, one, monkeypatch, changes, why):
    for name, value in changes.items():
        monkeypatch.setattr(opens, name, value)
    batches(host, one, 3)
    assert why in one.totals.reasons["opens"]
    assert one.totals.epochs[0][4] == -1
