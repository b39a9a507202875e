"""storage-format where fetching was seen from inside: what reading is of fetch, which layout fits,
what is misread."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec import structs
from torch.utils.data import DataLoader

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Code, CodeStage
from loaderscope.advisors.storage import files
from loaderscope.advisors.storage.files import opens_of_a_file
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from rule_cases import advice, asked, outcomes, rejection, shown, unmeasured
from silence import silent
from stack_cases import OWN, seen
from storage_cases import looks_of, stored_case
from stored_sets import InDatabase, InTar, InZip, Listed, Rows, Table

NAME = "storage-format"
ROWS = torch.zeros(4, 64)


class Plain(Listed):
    """Files whose samples do not change, of one shape."""

    def __init__(self, suffix: str = ".bin") -> None:
        super().__init__([f"/data/{n}{suffix}" for n in range(1000)])

    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.files[index], "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


class Pictures(Plain):
    def __init__(self, suffix: str = ".png") -> None:
        super().__init__(suffix)
        self.transform = str.upper

    def __getitem__(self, index: int) -> Any:
        with open(self.files[index], "rb") as file:
            return self.transform(str(file.read()))


def case(tmp_path, dataset, looks, *, shuffle=True, batch=ROWS, **options) -> Case:
    loader = DataLoader(dataset, batch_size=4, shuffle=shuffle)
    return stored_case(tmp_path, loader, looks, batch=batch, **options)


def test_workload_c_ends_in_what_packing_could_gain_at_most(tmp_path: Path) -> None:
    looks = looks_of(".png", 13_000, fetch_ms=4.0, idle=0.02, disk=0, mount="overlay")
    seen = case(tmp_path, Pictures(), looks, idle=0.02)
    found = rejection(NAME, seen)
    assert "Decoding is 98 % and reading 0.3 % of fetch" in found.why
    assert "at most ×2.5." in found.why
    assert asked(seen) == [{"fetch": pytest.approx(1 - (12 + 1.3) / 4000, abs=1e-4)}]
    figures = shown(found, "files", "mean size of a file", "file system", "opened per sample")
    assert figures == ("1,000 .png", "13.0 kB", "overlay (overlay)", "1")


def test_waiting_that_is_not_for_files_is_said_not_to_be(tmp_path: Path) -> None:
    found = rejection(NAME, case(tmp_path, Pictures(), looks_of(disk=0)))
    assert "80 % of it, is not the files" in found.why


def test_files_read_from_the_disk_are_packed_into_one(tmp_path: Path) -> None:
    seen = case(tmp_path, Pictures(), looks_of())
    found = advice(NAME, seen)
    assert found.title == "Pack the files into one" and "packed.bin" in found.code
    assert asked(seen)[0]["fetch"] == pytest.approx((1 - 0.9 * 0.804, 1 - 0.1 * 0.804), abs=0.01)
    assert str(found.evidence["read from the disk"]) == "100 % of the bytes"


def test_files_from_the_page_cache_of_this_machine_are_left_as_they_are(tmp_path: Path) -> None:
    looks = looks_of(fetch_ms=0.03, mean_bytes=12_000, disk=0, idle=0.0)
    found = rejection(NAME, case(tmp_path, Pictures(), looks, idle=0.0))
    assert "page cache" in found.why and "0.92 to 1.03" in found.why


def test_read_in_order_from_a_network_they_go_into_tar_shards(tmp_path: Path) -> None:
    looks = looks_of(mount="fuse.gcsfuse")
    found = advice(NAME, case(tmp_path, Plain(), looks, shuffle=False))
    assert "tar shards" in found.title and "four for each worker and rank" in found.code
    assert "tar" not in advice(NAME, case(tmp_path / "b", Plain(), looks, shuffle=True)).title


def inside(kind: str, size: int, **looks: Any) -> SampledFetches:
    """Looks at fetching out of one container; `suffix`: opened past Python's `open` if there is none."""
    suffix, distinct = (f".{kind}", 1) if kind in ("zip", "tar") else (None, None)
    known = ((kind, f"/data/x.{kind}", size),)
    return looks_of(suffix, size, **{"distinct": distinct, "containers": known, **looks})


ZIP = inside("zip", 4_000_000, idle=0.1)
TAR = inside("tar", 10**6, opens=1600, idle=0.1)
HDF5 = inside("hdf5", 10**7, read=2_000_000, disk=0, idle=0.0)
PARQUET = inside("parquet", 10**7, read=500_000, disk=0, idle=0.0)
KEPT = "self.handle = zipfile.ZipFile(…)"
OPENED = "opened for each sample: sqlite3.connect, seen in the source\n"


@pytest.mark.parametrize(
    ("dataset", "looks", "idle", "title", "code", "said"),
    [
        (InZip(), ZIP, 0.1, "zip archive once in each worker", KEPT, "before: 100 %\n"),
        (InDatabase(), looks_of(None, read=4000, idle=0.1), 0.1, "", "", OPENED),
        (Rows(), HDF5, 0.0, "chunk", "chunks=(1, *rows.shape[1:])", "read a sample: 2.00 MB\n"),
        (Table(), PARQUET, 0.0, "small row groups", "row_group_size=64", "row group"),
    ],
)
def test_containers_are_read_otherwise(tmp_path, dataset, looks, idle, title, code, said):
    found = advice(NAME, case(tmp_path, dataset, looks, idle=idle))
    told = [found.why, *(f"{name}: {value}\n" for name, value in found.evidence.items())]
    assert title in found.title and code in found.code and any(said in each for each in told)


test_it_is_silent_of_containers_read_as_they_should_be = silent(
    NAME,
    case,
    {"dataset": Rows(), "looks": inside("hdf5", 10**6, read=300)},
    {"dataset": Rows(), "looks": inside("hdf5", 10**6, read=60_000)},  # little in all
    {"dataset": Rows(), "looks": inside("hdf5", 10**7, read=131_072)},  # two of 64 KiB: no chunks
    {"dataset": Table(), "looks": inside("parquet", 10**6, read=300)},
)


@pytest.mark.parametrize(
    ("dataset", "looks", "library", "entries", "known"),
    [
        # 1,000 entries of 1.5 to 5 µs in 5 ms; or zipfile's part of the time, within a fifth.
        (InZip(), ZIP, ("zipfile", 0.9), (0.02, 0.7), (0.02, 0.28)),
        # 1,000 entries of 9 µs are more than the 5 ms.
        (InTar(), TAR, ("tarfile", 0.5), (0.02, 0.1), (0.4, 0.6)),
    ],
)
def test_stacks_say_more_of_an_archive_than_its_entries(
    tmp_path, dataset, looks, library, entries, known
):
    before, (name, part) = case(tmp_path, dataset, looks, idle=0.1), library
    advice(NAME, before)
    advice(NAME, with_code(before, CodeStage(100, None, (), (), {name: part, "": 1 - part}, ())))
    assert [each["fetch"] for each in asked(before)[:2]] == [*map(pytest.approx, (entries, known))]


def test_compressed_chunks_show_in_the_stacks(tmp_path: Path) -> None:
    looks = inside("hdf5", 10**7, read=10, disk=0, idle=0.0)  # chunks that are kept are not read
    before = case(tmp_path, Rows(), looks, idle=0.0)
    assert outcomes(NAME, before) == []
    stage = CodeStage(100, None, (), (), {"h5py": 0.9, "numpy": 0.1}, ())
    assert "chunk" in advice(NAME, with_code(before, stage)).title


@pytest.mark.parametrize(("distinct", "workers", "times"), [(98, 0, 10), (330, 0, 1), (173, 2, 10)])
def test_files_that_many_samples_open_are_to_be_read_once(tmp_path, distinct, workers, times):
    looks = looks_of(".npz", distinct=distinct, idle=0.0, disk=0)
    made = case(tmp_path, Plain(".npz"), looks, idle=0.0)
    made = replace(
        made, loader=replace(made.loader, config={**made.config, "num_workers": workers})
    )
    assert opens_of_a_file(made.loader) == pytest.approx(times, rel=0.05)
    stacks = (f"Plain.__getitem__ {OWN}:41", 80), (f"Plain.__getitem__ {OWN}:42", 20)
    opening = seen(made, *stacks, text="return np.load(path)")
    titles = [each.title for each in outcomes(NAME, opening)]
    assert ("Read each file once, not for each of its samples" in titles) is (times > 3)
    if times > 3:
        assert "opens each file about 10 times" in advice(NAME, opening).why
    other = seen(made, *stacks, text="return np.fft.rfft(self.values)")
    assert not any("once" in each.title for each in outcomes(NAME, other))


def test_an_epoch_opens_files_as_often_as_the_batches_show_at_least(tmp_path, monkeypatch):
    loader = case(tmp_path, Plain(".npz"), looks_of(".npz", distinct=98)).loader
    of_all = opens_of_a_file(loader)
    monkeypatch.setattr(files, "length_of", lambda _: None)  # which only code of the user's tells
    given = loader.batches["samples"][loader.batches["epoch"] == 0].sum()
    assert 0 < given < len(Plain()) and of_all is not None
    assert opens_of_a_file(loader) == pytest.approx(of_all * given / len(Plain()), rel=0.05)


def test_how_often_files_are_opened_is_known_of_random_order_alone(tmp_path: Path) -> None:
    looks = looks_of(".npz", distinct=98)
    assert opens_of_a_file(case(tmp_path, Plain(".npz"), looks, shuffle=False).loader) is None
    for distinct, times in ((400, 1), (98, 10)):  # each sample opens its file twice
        twice = looks_of(".npz", opens=800, different=400, distinct=distinct)
        made = case(tmp_path / f"{times} times", Plain(".npz"), twice)
        assert opens_of_a_file(made.loader) == pytest.approx(times, rel=0.05)
    more = looks_of(".npz", distinct=98, reopened=10)  # not all paths were kept
    assert opens_of_a_file(case(tmp_path / "more", Plain(".npz"), more).loader) is None
    for damage in ({"samples": 0}, {"opens": 9, "distinct": 0, "reopened": 9}):
        damaged = replace(
            case(tmp_path / f"{len(damage)}", Plain(), looks).loader,
            looks=structs.replace(looks, **damage),
        )
        assert opens_of_a_file(damaged) is None


def with_code(before: Case, stage: CodeStage) -> Case:
    code = Code(1, 100, 1.0, 100.0, {"fetch": stage})
    return replace(before, report=replace(before.report, code=code))


test_it_is_silent_where_loading_is_not_what_limits = silent(
    NAME,
    case,
    # It waits for something else.
    {"dataset": Pictures(), "looks": looks_of(None, read=0), "fetch_ms": 2.0},
    {"dataset": Pictures(), "looks": looks_of(), "compute_ms": 2000.0},
)


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
    shares = {"reading_share": 0.02, "decoding_share": 0.2, "other_share": 0.78}
    storage = replace(before.report.storage, **shares)
    report = replace(before.report, waiting=waiting, storage=storage)
    found = rejection(NAME, replace(before, report=report))
    decoding, reading = found.evidence["decoding"], found.evidence["reading"]
    assert found.why.startswith(f"Decoding is {decoding} and reading {reading} ")
    assert "of fetch, which waits for a core 75 % of its time" in found.why
    assert "reading 2.0 %" in found.why and "is not the files" not in found.why


def test_files_whose_reading_was_not_seen_are_not_judged(tmp_path: Path) -> None:
    reason = unmeasured(NAME, case(tmp_path, Pictures(), None))
    assert "no fetch and no system sample shows it" in reason
