"""Which files a probe is about, whatever the folder or the run holds."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from builders import RunBuilder, loop
from loaderscope.advisors.storage_probe import source
from loaderscope.advisors.storage_probe.source import find_data
from loaderscope.profiler.base.errors import RunNotFound, UsageError
from loaderscope.profiler.store.inspection import Inspection, Part
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
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
    assert (found.suffix, found.count, found.bytes) == (".png", 3, 15)
    assert names(found) == ["y.png", "x.PNG", "z.png"]
    assert found.notes == ("2 files of other kinds were left out",)
    assert not found.partial


def test_hidden_names_links_and_pipes_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "data", "x.bin", ".hidden.bin", ".cache/y.bin")
    write(tmp_path / "elsewhere", "secret.bin")
    (tmp_path / "data/loop").symlink_to(tmp_path / "data")
    (tmp_path / "data/out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/link.bin").symlink_to(tmp_path / "elsewhere/secret.bin")
    os.mkfifo(tmp_path / "data/pipe.bin")
    assert names(find_data(tmp_path / "data", 5)) == ["x.bin"]


def test_a_large_folder_is_walked_in_part_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *(f"{n}.bin" for n in range(20)))
    monkeypatch.setattr(source, "MAX_ENTRIES", 7)
    found = find_data(tmp_path, 5)
    assert (found.count, found.partial) == (7, True)


def test_a_walk_that_takes_too_long_ends(tmp_path: Path) -> None:
    write(tmp_path, *(f"{n}/x.bin" for n in range(5)))
    found = find_data(tmp_path, 0)
    assert found.partial
    assert found.count == 1


def test_what_holds_no_files_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no files in"):
        find_data(tmp_path, 5)
    with pytest.raises(UsageError, match="is a file"):
        find_data(write(tmp_path, "x.bin") / "x.bin", 5)
    with pytest.raises(RunNotFound):
        find_data("no-such-thing", 5)


def test_packed_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"2 \.tar files .* packed already"):
        find_data(write(tmp_path, "0.tar", "1.tar", "readme.md"), 5)


@pytest.mark.skipif(os.getuid() == 0, reason="root reads every folder")
def test_folders_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    write(tmp_path, "a/x.bin", "b/y.bin")
    (tmp_path / "b").chmod(0)
    found = find_data(tmp_path, 5)
    (tmp_path / "b").chmod(stat.S_IRWXU)
    assert names(found) == ["x.bin"]
    assert "1 folders cannot be read" in found.notes[0]


# runs


def recorded(runs: Path, looks: SampledFetches, length: int | None = None, **facts: Any) -> Run:
    builder = RunBuilder(runs)
    builder.process(**facts).loader(loop(5))
    run = open_run(builder.path)
    loader = replace(
        run.loaders[0], looks=looks, inspection=Inspection(Part("a.B", "B", length=length))
    )
    return replace(run, processes=(replace(run.processes[0], loaders=(loader,)),))


def opened(suffix: str, opens: int) -> dict[str, SuffixTotals]:
    return {suffix: SuffixTotals(opens, opens, 5 * opens, 5)}


def test_a_run_is_probed_on_the_folders_it_read(tmp_path: Path, runs_dir: Path) -> None:
    write(tmp_path / "data", "a/x.png", "a/deeper/no.png", "b/y.png", "b/z.txt", "c/unread.png")
    folders = {
        str(tmp_path / "data/a"): 3,
        str(tmp_path / "data/b"): 2,
        "/no/such/folder": 1,
        "relative": 1,
    }
    looks = SampledFetches(
        samples=5,
        opens=6,
        directories=2,
        folders=folders,
        suffixes={**opened(".png", 5), **opened("", 1)},
    )
    found = find_data(recorded(runs_dir, looks), 5)
    assert names(found) == ["x.png", "y.png"]
    assert found.folders == (tmp_path / "data/a", tmp_path / "data/b")
    assert (found.count, found.bytes, found.partial) == (2, 10, False)
    assert "recorded on elsewhere" in found.notes[0]


def test_the_whole_of_a_run_comes_from_its_length_where_not_all_folders_are_known(
    tmp_path: Path, runs_dir: Path
) -> None:
    write(tmp_path / "a", "x.png", "y.png")
    looks = SampledFetches(
        samples=50,
        opens=50,
        directories=9,
        folders={str(tmp_path / "a"): 50},
        suffixes=opened(".png", 50),
    )
    found = find_data(recorded(runs_dir, looks, length=1000), 5)
    assert (found.count, found.bytes, found.partial) == (1000, 5000, False)
    assert find_data(recorded(runs_dir / "again", looks), 5).partial


def test_a_run_whose_files_are_gone_says_so(tmp_path: Path, runs_dir: Path) -> None:
    looks = SampledFetches(
        samples=1, opens=1, folders={"/gone/for\x1bever": 1}, suffixes=opened(".png", 1)
    )
    with pytest.raises(UsageError, match="not on this machine") as caught:
        find_data(recorded(runs_dir, looks), 5)
    assert str(caught.value).isprintable()
    (tmp_path / "empty").mkdir()
    looks = structs.replace(looks, folders={str(tmp_path / "empty"): 1})
    with pytest.raises(UsageError, match=r"no \.png files any more"):
        find_data(recorded(runs_dir / "again", looks), 5)


def test_a_run_without_files_says_what_it_read(runs_dir: Path) -> None:
    with pytest.raises(UsageError, match="not seen to open any files"):
        find_data(recorded(runs_dir, SampledFetches()), 5)
    looks = SampledFetches(containers=(ContainerFile("/data/x", "lmdb", 5),))
    with pytest.raises(UsageError, match="from lmdb: they are packed already"):
        find_data(recorded(runs_dir / "again", looks), 5)


def test_a_folder_with_run_json_is_a_run(runs_dir: Path) -> None:
    builder = RunBuilder(runs_dir)
    builder.process().loader(loop(5))
    for name in (str(builder.path), "latest", builder.path):
        with pytest.raises(UsageError, match="not seen to open any files"):
            find_data(name, 5)
