"""Which files a probe is about, whatever the folder or the run holds, and the sample of them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import loop, opened
from loaderscope.advisors.storage_probe import source
from loaderscope.advisors.storage_probe.run_probe import Bounds, choose, read_size
from loaderscope.advisors.storage_probe.source import find_data
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.sampled_fetches import ContainerFile, SampledFetches, SuffixTotals


def write(folder: Path, *names: str, data: bytes = b"12345") -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def names(found: source.Data) -> list[str]:
    return [Path(path).name for path, _ in found.files]


def test_the_commonest_suffix_is_taken_whatever_its_case(tmp_path: Path) -> None:
    write(tmp_path, "b/x.PNG", "a/y.png", "z.png", "labels.csv", "notes.txt")
    found = find_data(tmp_path, 5)
    assert (found.suffix, len(found.files), found.bytes) == (".png", 3, 15)
    assert names(found) == ["y.png", "x.PNG", "z.png"]
    assert not found.partial


def test_hidden_names_links_and_pipes_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "data", "x.bin", ".hidden.bin", ".cache/y.bin")
    write(tmp_path / "elsewhere", "secret.bin")
    (tmp_path / "data/loop").symlink_to(tmp_path / "data")
    (tmp_path / "data/out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/link.bin").symlink_to(tmp_path / "elsewhere/secret.bin")
    os.mkfifo(tmp_path / "data/pipe.bin")
    assert names(find_data(tmp_path / "data", 5)) == ["x.bin"]


@pytest.mark.parametrize(("entries", "seconds", "count"), [(7, 5, 7), (1000, 0, 1)])
def test_a_large_folder_is_walked_in_part(tmp_path, monkeypatch, entries, seconds, count):
    write(tmp_path, *(f"{n}/x.bin" if not seconds else f"{n}.bin" for n in range(20)))
    monkeypatch.setattr(source, "MAX_FILES", entries)
    found = find_data(tmp_path, seconds)
    assert (len(found.files), found.partial) == (count, True)


def test_files_that_hold_many_samples_are_packed_already(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"2 \.tar files .* packed already"):
        find_data(write(tmp_path, "0.tar", "1.tar", "readme.md"), 5)


def recorded(runs: Path, *opens: tuple[str, int], **looks: Any) -> Run:
    """A run whose loader was seen to open so many files of these suffixes."""
    run = opened(runs, loop(5))
    suffixes = {suffix: SuffixTotals(count, count, 5 * count, 5) for suffix, count in opens}
    loader = replace(run.loaders[0], looks=SampledFetches(suffixes=suffixes, **looks))
    return replace(run, processes=(replace(run.processes[0], loaders=(loader,)),))


def test_a_run_is_probed_on_the_folders_it_read(tmp_path: Path, runs_dir: Path) -> None:
    write(tmp_path / "data", "a/x.png", "a/deeper/no.png", "b/y.png", "b/z.txt", "c/unread.png")
    read = [tmp_path / "data/a", tmp_path / "data/b"]
    folders = {str(read[0]): 3, str(read[1]): 2, "/no/such/folder": 1, "relative": 1}
    found = find_data(recorded(runs_dir, (".png", 5), ("", 1), directories=2, folders=folders), 5)
    assert names(found) == ["x.png", "y.png"]
    assert found.folders == tuple(read)
    assert (found.bytes, found.partial) == (10, False)
    # Where not all folders of a run are known, there may be more.
    assert find_data(
        recorded(runs_dir / "b", (".png", 5), directories=9, folders=folders), 5
    ).partial


def test_a_run_whose_files_are_gone_says_so(tmp_path: Path, runs_dir: Path) -> None:
    with pytest.raises(UsageError, match="not on this machine"):
        find_data(recorded(runs_dir, (".png", 1), folders={"/gone": 1}), 5)
    (tmp_path / "empty").mkdir()
    empty = recorded(runs_dir / "b", (".png", 1), folders={str(tmp_path / "empty"): 1})
    with pytest.raises(UsageError, match="there are no files in run"):
        find_data(empty, 5)


def test_a_run_without_files_says_what_it_read(runs_dir: Path) -> None:
    run = recorded(runs_dir)
    for name in (run, str(run.path), "latest", run.path):
        with pytest.raises(UsageError, match="not seen to open any files"):
            find_data(name, 5)
    packed = recorded(runs_dir / "b", containers=(ContainerFile("/data/x", "lmdb", 5),))
    with pytest.raises(UsageError, match="from lmdb: they are packed already"):
        find_data(packed, 5)


def data(*sizes: int) -> list[tuple[str, int]]:
    return [(f"/x/{n:04d}", size) for n, size in enumerate(sizes)]


def test_a_seed_decides_the_sample_which_keeps_to_files_and_bytes() -> None:
    files, bounds = data(*[10] * 500), Bounds(5000, 20, 1)
    first, again, other = (choose(files, bounds, seed) for seed in (3, 3, 4))
    assert first == again and set(first) != set(other) and len(set(first)) == 20
    assert len(choose(data(*[10] * 100), Bounds(55, 100, 1), seed=0)) == 5
    # One that is larger than the bound is passed over.
    assert len(choose(data(5, 1 << 40, 5), Bounds(1 << 20, 100, 1), seed=0)) == 2


def test_sizes_are_read_as_people_write_them() -> None:
    texts = ["4096", "64MB", "1.5 GB", "2GiB", "10k", "7b"]
    assert [*map(read_size, texts)] == [4096, 64_000_000, 1_500_000_000, 2 << 30, 10_000, 7]
    for wrong in ("", "MB", "-1", "1e9", "1 XB", "٣", "1" * 40, "nan"):
        with pytest.raises(UsageError, match="is not a size"):
            read_size(wrong)
