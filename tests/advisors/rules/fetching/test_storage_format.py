"""storage-format where fetching was seen from inside: what reading is of fetch, which layout fits,
what is misread."""

from __future__ import annotations

import sqlite3
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, SequentialSampler

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.code.layouts.packed import map_size
from loaderscope.advisors.schema.report_model import Code, CodeStage
from rule_cases import FakeWhatIf, advice, outcomes, rejection, unmeasured
from storage_cases import looks_of, memory, pasted, same_batches, stored_case

NAME = "storage-format"
ROWS = torch.zeros(4, 64)


class Pictures(Dataset[Any]):
    def __init__(self, suffix: str = ".png", count: int = 1000) -> None:
        self.files = [f"/data/{n}{suffix}" for n in range(count)]
        self.transform = str.upper

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        with open(self.files[index], "rb") as file:
            return self.transform(str(file.read()))


class Plain(Dataset[Any]):
    """Files whose samples do not change, of one shape."""

    def __init__(self, suffix: str = ".bin", count: int = 1000) -> None:
        self.files = [f"/data/{n}{suffix}" for n in range(count)]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.files[index], "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


class OneFile(Dataset[Any]):
    def __init__(self, path: str = "/data/x") -> None:
        self.path = path
        self.handle: Any = None

    def __len__(self) -> int:
        return 1000


class InZip(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        with zipfile.ZipFile(self.path) as archive:
            return torch.tensor(list(archive.read(str(index))))


class InDatabase(OneFile):
    def __getitem__(self, index: int) -> Any:
        database = sqlite3.connect(self.path)
        return database.execute("SELECT raw FROM samples WHERE id = ?", (index,)).fetchone()


class Rows(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        import h5py

        if self.handle is None:
            self.handle = h5py.File(self.path)["rows"]
        return torch.from_numpy(self.handle[index])


class Table(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        import pyarrow.parquet as pq

        if self.handle is None:
            self.handle = pq.ParquetFile(self.path)
        return torch.tensor(self.handle.read_row_group(index // 100)["x"][index % 100].as_py())


class Store(OneFile):
    def __getitem__(self, index: int) -> torch.Tensor:
        import lmdb

        if self.handle is None:
            self.handle = lmdb.open(self.path, readonly=True)
        with self.handle.begin() as reading:
            return torch.tensor(list(reading.get(b"%d" % index)))


def case(
    tmp_path: Path, dataset: Dataset[Any], looks: Any, *, shuffle: bool = True, **options: Any
) -> Case:
    loader = DataLoader(dataset, batch_size=4, shuffle=shuffle)
    return stored_case(tmp_path, loader, looks, batch=options.pop("batch", ROWS), **options)


def test_workload_c_ends_in_what_packing_could_gain_at_most(tmp_path: Path) -> None:
    whatif = FakeWhatIf()
    looks = looks_of(".png", 13_000, fetch_ms=4.0, idle=0.02, disk=0, mount="overlay")
    found = rejection(NAME, case(tmp_path, Pictures(), looks, idle=0.02, whatif=whatif))
    assert (
        "Decoding is 98 % and reading 0.3 % of fetch" in found.why and "at most ×2.5." in found.why
    )
    assert whatif.asked == [{"fetch": pytest.approx(1 - (12 + 1.3) / 4000, abs=1e-4)}]
    assert str(found.evidence["files"]) == "1,000 .png"
    assert str(found.evidence["mean size of a file"]) == "13.0 kB"
    assert str(found.evidence["file system"]) == "overlay (overlay)"
    assert str(found.evidence["opened per sample"]) == "1"


def test_waiting_that_is_not_for_files_is_said_not_to_be(tmp_path: Path) -> None:
    found = rejection(NAME, case(tmp_path, Pictures(), looks_of(disk=0)))
    assert "80 % of it, is not the files" in found.why


def test_files_read_from_the_disk_are_packed_into_one(tmp_path: Path) -> None:
    whatif = FakeWhatIf()
    found = advice(NAME, case(tmp_path, Pictures(), looks_of(), whatif=whatif))
    assert found.title == "Pack the files into one" and "packed.bin" in found.code
    low, high = whatif.asked[0]["fetch"]
    assert low == pytest.approx(1 - 0.9 * 0.804, abs=0.01) and high == pytest.approx(
        1 - 0.1 * 0.804, abs=0.01
    )
    assert str(found.evidence["read from the disk"]) == "100 % of the bytes"


def test_files_from_the_page_cache_of_this_machine_are_left_as_they_are(tmp_path: Path) -> None:
    looks = looks_of(fetch_ms=0.03, mean_bytes=12_000, disk=0, idle=0.0)
    found = rejection(NAME, case(tmp_path, Pictures(), looks, idle=0.0))
    assert "page cache" in found.why and "0.92 to 1.03" in found.why


def test_on_a_network_they_go_into_lmdb_with_its_map_size(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path, Pictures(), looks_of(mount="nfs4")))
    size = map_size(1000 * 100_000, 1000)
    assert "LMDB" in found.title and f"{size:,} bytes" in str(found.evidence["map_size"])
    assert '"map_size": int(needed * 1.1)' in found.code


def test_read_in_order_from_a_network_they_go_into_tar_shards(tmp_path: Path) -> None:
    whole = looks_of(mount="fuse.gcsfuse", sequential=390)
    found = advice(NAME, case(tmp_path, Plain(), whole, shuffle=False))
    assert "tar shards" in found.title and str(found.evidence["shards"]).startswith("4 ")
    found = advice(
        NAME,
        case(
            tmp_path / "b", Plain(), looks_of(mount="fuse.gcsfuse", sequential=200), shuffle=False
        ),
    )
    assert "tar" not in found.title


def test_samples_of_one_shape_become_an_array_where_memory_holds_it(tmp_path: Path) -> None:
    looks = looks_of(".bin", 256)
    whatif = FakeWhatIf()
    found = advice(NAME, case(tmp_path, Plain(), looks, system=memory(), whatif=whatif))
    assert (
        "memory-mapped array" in found.title and str(found.evidence["the arrays take"]) == "256 kB"
    )
    low, high = whatif.asked[0]["fetch"]  # reading is 0.80, decoding 0.20: both are saved
    assert low == pytest.approx(1 - 0.72 - 0.19, abs=0.01) and high == pytest.approx(
        1 - 0.08 - 0.1, abs=0.01
    )
    much = torch.zeros(4, 64 * 5)
    assert advice(
        NAME, case(tmp_path / "b", Plain(), looks, system=memory(), batch=much)
    ).title.startswith("Pack")
    assert advice(NAME, case(tmp_path / "c", Plain(), looks)).title.startswith(
        "Pack"
    )  # memory not known


def test_an_archive_opened_for_each_sample_is_kept_open(tmp_path: Path) -> None:
    whatif = FakeWhatIf()
    looks = looks_of(
        ".zip", 4_000_000, distinct=1, idle=0.1, containers=(("zip", "/data/x.zip", 4_000_000),)
    )
    found = advice(NAME, case(tmp_path, InZip(), looks, idle=0.1, whatif=whatif))
    assert "zip archive once in each worker" in found.title and "Kept(module.ZipFile)" in found.code
    assert str(found.evidence["of them opened before"]) == "100 %"
    low, high = whatif.asked[0]["fetch"]  # 1,000 entries of 1.5 to 5 µs in 5 ms
    assert low == pytest.approx(0.02) and high == pytest.approx(0.7)


def test_what_a_library_opens_is_seen_in_the_source(tmp_path: Path) -> None:
    found = advice(
        NAME, case(tmp_path, InDatabase(), looks_of(None, read=4000, idle=0.1), idle=0.1)
    )
    assert str(found.evidence["opened for each sample"]) == "sqlite3.connect, seen in the source"


@pytest.mark.parametrize(
    ("dataset", "looks"),
    [
        (Rows(), looks_of(None, read=300, containers=(("hdf5", "/data/x.h5", 10**6),))),
        (Rows(), looks_of(None, read=60_000, containers=(("hdf5", "/data/x.h5", 10**6),))),  # little in all
        (Table(), looks_of(None, read=300, containers=(("parquet", "/data/x.parquet", 10**6),))),
        (Store(), looks_of(None, read=300, disk=700, containers=(("lmdb", "/data/data.mdb", 300_000),))),
        (Store(), looks_of(None, read=0, disk=9000, containers=(("lmdb", "/data/data.mdb", 4_000_000),))),
    ],
)  # fmt: skip
def test_it_is_silent_of_containers_read_as_they_should_be(
    tmp_path: Path, dataset: Any, looks: Any
) -> None:
    assert outcomes(NAME, case(tmp_path, dataset, looks)) == []


def test_chunks_that_are_read_for_little_are_rewritten(tmp_path: Path) -> None:
    looks = looks_of(
        None, read=2_000_000, disk=0, idle=0.0, containers=(("hdf5", "/data/x.h5", 10**7),)
    )
    found = advice(NAME, case(tmp_path, Rows(), looks, idle=0.0))
    assert "chunk" in found.title and str(found.evidence["read a sample"]) == "2.00 MB"
    assert "source = Path(dataset.path)" in found.code and "rows.handle = None" in found.code


def test_compressed_chunks_show_in_the_stacks(tmp_path: Path) -> None:
    looks = looks_of(None, read=1000, disk=0, idle=0.0, containers=(("hdf5", "/data/x.h5", 10**7),))
    before = case(tmp_path, Rows(), looks, idle=0.0)
    assert outcomes(NAME, before) == []
    stage = CodeStage(100, None, (), (), {"h5py": 0.9, "numpy": 0.1}, ())
    found = advice(NAME, with_code(before, stage))
    assert "chunk" in found.title


def with_code(before: Case, stage: CodeStage) -> Case:
    code = Code(1, 100, 1.0, 100.0, False, {"fetch": stage})
    return replace(before, report=replace(before.report, code=code))


def test_row_groups_that_are_read_for_a_row_are_left(tmp_path: Path) -> None:
    looks = looks_of(
        None, read=500_000, disk=0, idle=0.0, containers=(("parquet", "/data/x.parquet", 10**7),)
    )
    found = advice(NAME, case(tmp_path, Table(), looks, idle=0.0))
    assert "row group" in found.why and "memory-mapped array" in found.title


def test_lmdb_that_reads_ahead_of_random_reads_is_told_not_to(tmp_path: Path) -> None:
    files = (("lmdb", "/data/data.mdb", 4_000_000),)
    found = advice(
        NAME, case(tmp_path, Store(), looks_of(None, read=0, disk=130_000, containers=files))
    )
    assert str(found.evidence["stored a sample"]) == "4.00 kB" and "readahead=False" in found.code


def test_a_compressed_archive_a_sample_becomes_an_array(tmp_path: Path) -> None:
    class Archives(Dataset[Any]):
        def __init__(self) -> None:
            self.files = []
            for n in range(8):
                self.files.append(str(tmp_path / f"{n}.npz"))
                np.savez_compressed(self.files[-1], values=np.full(64, n, np.float32))

        def __len__(self) -> int:
            return len(self.files)

        def __getitem__(self, index: int) -> torch.Tensor:
            with np.load(self.files[index]) as archive:
                return torch.from_numpy(archive["values"])

    dataset = Archives()
    looks = looks_of(".npz", 300, idle=0.0, disk=0)
    found = advice(NAME, case(tmp_path, dataset, looks, idle=0.0))
    assert ".npz" in found.title and "decompresses" in found.why
    sampler = SequentialSampler(dataset)
    loader = pasted(found.code.replace("shuffle=True", "sampler=sampler"), dataset, sampler=sampler)
    assert same_batches(DataLoader(dataset, batch_size=4), loader)


@pytest.mark.parametrize("options", [{"fetch_ms": 2.0}, {"compute_ms": 2000.0}])
def test_it_is_silent_where_loading_is_not_what_limits(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    looks = looks_of(".png")
    if "fetch_ms" in options:  # waiting is for something else than fetching
        looks = looks_of(None, read=0)
    assert outcomes(NAME, case(tmp_path, Pictures(), looks, **options)) == []


def test_a_tar_archive_that_is_searched_again_is_what_the_stacks_say(tmp_path: Path) -> None:
    class InTar(OneFile):
        def __getitem__(self, index: int) -> Any:
            with tarfile.open(self.path) as archive:
                return archive.extractfile(str(index))

    whatif = FakeWhatIf()
    looks = looks_of(
        ".tar", 10**6, opens=1600, distinct=1, idle=0.1, containers=(("tar", "/data/x.tar", 10**6),)
    )
    before = case(tmp_path, InTar(), looks, idle=0.1, whatif=whatif)
    advice(NAME, before)
    advice(NAME, with_code(before, CodeStage(100, None, (), (), {"tarfile": 0.5, "": 0.5}, ())))
    assert whatif.asked[0]["fetch"] == (0.02, 0.1)  # 1,000 entries of 9 µs are more than the 5 ms
    assert whatif.asked[1]["fetch"] == (pytest.approx(0.4), pytest.approx(0.6))


def test_an_open_that_is_cheap_beside_the_rest_is_no_container(tmp_path: Path) -> None:
    looks = looks_of(".bin", 10**6, distinct=1, containers=())
    found = outcomes(NAME, case(tmp_path, Pictures(".bin"), looks))
    # A thousand different files are listed: that the looks saw one again and again is chance.
    assert [getattr(each, "title", "") for each in found] == ["Pack the files into one"]


def test_waiting_for_a_core_is_no_part_of_the_work(tmp_path: Path) -> None:
    looks = looks_of(".png", 13_000, fetch_ms=4.0, idle=0.8, disk=0)
    before = case(tmp_path, Pictures(), looks)
    assert before.report.waiting is not None and before.report.storage is not None
    waiting = replace(before.report.waiting, fetch_core_wait_share=0.75)
    storage = replace(
        before.report.storage, reading_share=0.02, decoding_share=0.2, other_share=0.78
    )
    found = rejection(
        NAME, replace(before, report=replace(before.report, waiting=waiting, storage=storage))
    )
    assert "of fetch, which waits for a core 75 % of its time" in found.why
    assert found.why.startswith(
        f"Decoding is {found.evidence['decoding']} and reading {found.evidence['reading']} "
    )
    assert "reading 2.0 %" in found.why and "is not the files" not in found.why


def test_stacks_say_more_of_a_zip_archive_than_its_entries(tmp_path: Path) -> None:
    whatif = FakeWhatIf()
    looks = looks_of(
        ".zip", 4_000_000, distinct=1, idle=0.1, containers=(("zip", "/data/x.zip", 4_000_000),)
    )
    before = case(tmp_path, InZip(), looks, idle=0.1, whatif=whatif)
    advice(NAME, with_code(before, CodeStage(100, None, (), (), {"zipfile": 0.9}, ())))
    low, high = whatif.asked[0]["fetch"]  # 0.1 beside zipfile, and reading one entry
    assert low == pytest.approx(0.02) and high == pytest.approx(0.1 + (100 + 2.56) / 5000)


def test_files_whose_reading_was_not_seen_are_not_judged(tmp_path: Path) -> None:
    assert "no fetch and no system sample shows it" in unmeasured(
        NAME, case(tmp_path, Pictures(), None)
    )
