"""What fetching reads: shares of reading and decoding, sizes of the data set and of memory."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from torch.utils.data import DataLoader

import stored_sets
from loaderscope.advisors.schema.report_model import EpochReads, FileKind, Mount, StorageSummary
from loaderscope.advisors.storage.files import few_files, main_suffix
from loaderscope.advisors.storage.summary import COPY_BYTES_PER_US, OPEN_US, mount_kind
from loaderscope.profiler.base.metadata import clean
from loaderscope.profiler.base.mounts import Mounts
from loaderscope.profiler.record.fetch_probe.opened_paths import PathSums
from loaderscope.profiler.store.probe_totals import ProbeTotals, read_sampled_fetches
from loaderscope.profiler.store.sampled_fetches import EpochTotals as Epoch
from loaderscope.profiler.store.sampled_fetches import MountTotals, SampledFetches, SuffixTotals
from rule_cases import case_of
from rule_rows import rows_of
from storage_cases import SAMPLES, looked, looks_of, memory, stored_case
from stored_sets import Rows, Sized


class Listed(stored_sets.Listed):
    def __init__(self, count: int = 1000, suffix: str = ".png") -> None:
        super().__init__([f"data/{n}{suffix}" for n in range(count)])


class Patches(Listed):
    def __len__(self) -> int:
        return 16 * len(self.files)


def summary(tmp_path: Path, looks: Any, dataset: Any = None, **options: Any) -> StorageSummary:
    loader = DataLoader(dataset if dataset is not None else Listed(), batch_size=4)
    found = stored_case(tmp_path, loader, looks, **options).report.storage
    assert found is not None
    return found


def shares(found: StorageSummary) -> tuple[Any, ...]:
    return found.reading_share, found.decoding_share, found.other_share


def test_nothing_is_said_of_data_that_is_not_stored(tmp_path: Path) -> None:
    assert stored_case(tmp_path, DataLoader(Sized(), batch_size=4)).report.storage is None


def test_waiting_for_files_is_reading_and_computing_is_decoding(tmp_path: Path) -> None:
    found = summary(tmp_path / "a", looks_of(idle=0.8, fetch_ms=5.0))
    copying = (OPEN_US + 100_000 / COPY_BYTES_PER_US) / 5000
    assert shares(found) == pytest.approx((0.8 + copying, 0.2 - copying, 0.0))
    assert found.opens_per_sample == 1.0
    assert found.read_bytes_per_sample == found.disk_bytes_per_sample == 100_000
    assert found.read_calls_per_sample == 2.0 and found.wait_us_per_open == pytest.approx(4000)
    # Copying from the page cache is reading, but never more than the CPU time.
    looks = looks_of(fetch_ms=0.02, mean_bytes=5_000_000, disk=0, idle=0.0)
    assert shares(summary(tmp_path / "b", looks, idle=0.0)) == pytest.approx((1.0, 0.0, 0.0))


def test_waiting_without_any_disk_is_not_for_files(tmp_path: Path) -> None:
    reading, _, other = shares(summary(tmp_path / "a", looks_of(disk=0)))
    assert reading < 0.01 and other == pytest.approx(0.8)
    for name, elsewhere in (("b", {"mount": "nfs4"}), ("c", {"faults": 3}), ("d", {"mounts": ()})):
        assert shares(summary(tmp_path / name, looks_of(disk=0, **elsewhere)))[0] > 0.8


def test_a_set_that_reads_nothing_waits_for_something_else(tmp_path: Path) -> None:
    found = summary(tmp_path, looks_of(None, read=0), Sized(1000))
    assert shares(found) == (0.0, pytest.approx(0.2), pytest.approx(0.8))
    assert found.wait_us_per_open is None
    assert found.reasons["wait_us_per_open"] == "no file was seen being opened"


def test_without_looks_the_samplers_counters_stand_in(tmp_path: Path) -> None:
    system = memory()
    for n, row in enumerate(system["process"]):
        row.update(read_all_bytes=n * 24_000, read_disk_bytes=n * 12_000)
    found = summary(tmp_path, None, system=system)
    assert (found.samples, found.opens_per_sample, found.epochs) == (0, None, ())
    assert found.read_bytes_per_sample == pytest.approx(9 * 24_000 / 240)
    assert found.disk_bytes_per_sample == pytest.approx(9 * 12_000 / 240)
    assert found.reading_share == pytest.approx(0.8, abs=0.05)


def test_what_was_not_measured_has_a_reason(tmp_path: Path) -> None:
    found = summary(tmp_path, None)
    a_sample = ("opens", "read_bytes", "disk_bytes", "read_calls")
    shares = ("reopened", "reading", "decoding", "other")
    whole = ("wait_us_per_open", "directories", "dataset_bytes", "memory_bytes")
    for name in (*(f"{n}_per_sample" for n in a_sample), *(f"{n}_share" for n in shares), *whole):
        assert getattr(found, name) is None and found.reasons[name], name


def test_the_reason_looks_give_is_passed_on(tmp_path: Path) -> None:
    epochs = (Epoch(0, 100, SAMPLES, 1, 1, 0, -1, -1, -1, -1),)
    looks = looks_of(None, read=0, epochs=epochs, reasons={"read_bytes": "no procfs here"})
    found = summary(tmp_path, looks)
    assert found.read_bytes_per_sample is None
    assert found.reasons["read_bytes_per_sample"] == "no procfs here"


def test_kinds_mounts_and_epochs_a_sample(tmp_path: Path) -> None:
    suffixes = {".JSON": SuffixTotals(3, 0, 0, 0), ".png": SuffixTotals(9, 4, 400, 200)}
    mounts = (MountTotals("/data", "lustre", 9),)
    second = Epoch(1, 2, 10, 1, 1, 10, 1000, 20, 0, -1)
    epochs = (second, Epoch(0, 2, 10, 1, 1, 10, 1000, 20, 1000, 5))
    found = summary(tmp_path, looks_of(suffixes=suffixes, mounts=mounts, epochs=epochs))
    assert found.kinds == (FileKind(".png", 9, 100.0, 200), FileKind(".json", 3, None, None))
    assert found.mounts == (Mount("/data", "lustre", "network", 9),)
    first = EpochReads(0, 10, 100.0, 100.0, 0.5)
    assert found.epochs == (first, EpochReads(1, 10, 100.0, 0.0, None))


NAMES = {"UTF-8": b"/srv/\xc3\xa9t\xc3\xa9", "Latin-1": b"/srv/donn\xe9es", "blank": b"/srv/a b"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_network_mount_of_any_name_is_one_everywhere(tmp_path, name, monkeypatch) -> None:
    kinds = {"/": "ext4", os.fsdecode(name): "nfs4"}
    table = [SimpleNamespace(mountpoint=path, fstype=kind) for path, kind in kinds.items()]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: table)
    totals, mounts = ProbeTotals(), Mounts()
    assert PathSums(totals, mounts=mounts).add([os.path.join(name, b"a.png")] * 3, 3) == 3
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "looks-0-m.json").write_text(totals.to_json())
    seen = read_sampled_fetches(tmp_path / "p", 0, "dataloader", {})
    found = summary(tmp_path / "run", looks_of(mounts=seen.mounts))
    assert found.mounts == (Mount(clean(os.fsdecode(name)), "nfs4", "network", 3),)


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("local", ["ext4", "xfs", "apfs", "ntfs", "ntfs3"]),
        ("overlay", ["overlay"]),
        ("network", ["nfs", "nfs4", "CIFS", "9p", "smb3"]),
        ("fuse", ["fuse", "fuse.sshfs", "fuseblk"]),
        ("memory", ["tmpfs"]),
        ("other", ["made-up", "", "ext5", "fuses", "nfs4x"]),
    ],
)
def test_kinds_of_file_systems(kind: str, types: list[str]) -> None:
    assert [mount_kind(each) for each in types] == [kind] * len(types)


def test_the_size_of_the_data_set_is_that_of_all_files_it_lists(tmp_path: Path) -> None:
    assert summary(tmp_path / "a", looks_of()).dataset_bytes == 1000 * 100_000
    # No list of files: its length, and as many files a sample as were opened.
    twice = summary(tmp_path / "b", looks_of(opens=800), Sized(1000))
    assert twice.dataset_bytes == 2 * 1000 * 100_000
    # The same few files again and again.
    assert summary(tmp_path / "c", looks_of(distinct=10), Sized(1000)).dataset_bytes == 10 * 100_000


def test_the_size_of_containers_is_their_own(tmp_path: Path) -> None:
    files = (("lmdb", "/a.mdb", 700), ("lmdb", "/b.mdb", 300), ("hdf5", "/c.h5", None))
    found = summary(tmp_path, looks_of(None, read=100, containers=files), Sized(1000))
    assert found.dataset_bytes == 1000
    assert [each.path for each in found.containers] == ["/a.mdb", "/b.mdb", "/c.h5"]


class Mapped(Sized):
    def __init__(self, path: Path) -> None:
        super().__init__(50)
        self.rows = np.memmap(path, np.float32, "w+", shape=(50, 10))


@pytest.mark.parametrize(
    ("dataset", "batch", "named", "seen"),
    [
        (Mapped, None, ("memmap", "dataset.rows", 2000), ("npy", "/data/rows.npy", 2128)),
        # A library that opens files itself is named by the source.
        (Rows, 0, ("hdf5", "dataset.path", None), ("hdf5", "/data/rows.h5", 9)),
    ],
)
def test_a_container_not_seen_is_named_by_the_data_set(tmp_path, dataset, batch, named, seen):
    held = dataset(tmp_path / "x.bin") if dataset is Mapped else dataset("/data/rows.h5", 100)
    for name, containers, told in (("a", (), named), ("b", (seen,), seen)):
        looks = looks_of(None, read=100, containers=containers)
        (found,) = summary(tmp_path / name, looks, held, batch=batch).containers
        assert (found.kind, found.path, found.bytes) == told


def test_memory_is_what_processes_leave_of_the_containers_limit(tmp_path: Path) -> None:
    limit = {"cgroup_mem_limit_bytes": 8_000_000_000}
    little = {**limit, "mem_available_bytes": 2_000_000_000}
    for expected, columns in ((31, {}), (7, limit), (2, little)):
        found = summary(tmp_path / f"{expected}", looks_of(), system=memory(**columns))
        assert found.memory_bytes == expected * 10**9


@pytest.mark.parametrize(
    ("few", "looks", "dataset"),
    [
        (True, looks_of(".tar", distinct=2), Sized(1000)),
        (False, looks_of(".png"), Sized(1000)),
        # A small data set that was gone through often opens its files again, too.
        (False, looks_of(".png", distinct=40), Listed(40)),
        (False, looks_of(None, read=0), Sized(1000)),
        # Patches of pictures: each file is read for sixteen samples, but holds none to be looked up.
        (False, looks_of(".png", distinct=40), Patches(40)),
        (True, looks_of(".h5", distinct=40), Patches(40, ".h5")),
    ],
)
def test_few_files_are_told_from_many(tmp_path: Path, few: bool, looks: Any, dataset: Any) -> None:
    assert few_files(stored_case(tmp_path, DataLoader(dataset, 4), looks).loader) is few


@pytest.mark.parametrize(("opens", "suffix"), [((5, 5), None), ((5, 6), ".xml"), ((), None)])
def test_the_main_suffix_has_more_than_half_of_the_opens(opens: Any, suffix: str | None) -> None:
    named = zip((".png", ".XML"), opens, strict=False)
    suffixes = {name: SuffixTotals(count, 0, 0, 0) for name, count in named}
    assert main_suffix(SampledFetches(opens=sum(opens), suffixes=suffixes)) == suffix


def test_a_loop_without_timed_fetching_has_no_shares(tmp_path: Path) -> None:
    rows, epochs = rows_of(1, wait_ms=20.0)
    case = case_of(tmp_path, rows, epochs=epochs, loader=DataLoader(Listed(), batch_size=4))
    storage = looked(case, looks_of()).report.storage
    assert storage is not None and storage.reading_share is None and storage.opens_per_sample == 1.0
    assert storage.reasons["reading_share"]
