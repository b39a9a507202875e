"""Whole probes of small real data: true, within bounds, and without a trace."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe import run_probe as probe
from loaderscope.advisors.storage_probe.layouts import Layout
from loaderscope.advisors.storage_probe.probe_model import StorageProbe
from loaderscope.profiler.base.errors import UsageError
from started import ran


@pytest.fixture
def temp(tmp_path: Path) -> Path:
    (folder := tmp_path / "temp").mkdir()
    return folder


def arrays(folder: Path, number: int = 30) -> Path:
    folder.mkdir()
    for n in range(number):
        np.save(folder / f"{n:03d}.npy", np.random.default_rng(n).random((20, 20)))
    return folder


def run(data: Path, temp: Path, seconds: float = 20, **bounds: int) -> StorageProbe:
    bounds = {"max_bytes": 1 << 28, "max_files": 500, **bounds}
    return probe.probe_storage(data, probe.Bounds(max_seconds=seconds, **bounds), temp=temp)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in [folder, *folder.rglob("*")]}


def test_a_whole_probe(tmp_path: Path, temp: Path) -> None:
    data = arrays(tmp_path / "data")
    (data / "labels.txt").write_text("x")
    before = state(data)
    found = run(data, temp, seconds=60.0)  # busy storage may take seconds for one fsync
    assert (state(data), os.listdir(temp)) == (before, [])
    facts = found.suffix, found.whole_files, found.samples, found.decoder
    assert facts == (".npy", 30, 30, "numpy")
    size = sum(p.stat().st_size for p in data.glob("*.npy"))
    assert found.sample_bytes == found.whole_bytes == size
    assert found.rounds >= 1
    by_name = {each.name: each for each in found.layouts}
    files, array = by_name["files"], by_name["array"]
    for each in (files, array):
        assert each.reason is None and each.warm is not None
        assert each.whole_bytes is not None and each.whole_bytes >= 30 * 20 * 20 * 8
    # Reading one array of many is nothing beside opening and parsing a file.
    assert array.gain is not None and array.gain.low <= array.gain.mid <= array.gain.high
    assert array.gain.mid > 2
    assert (files.cold is None) == (found.cold_reason is not None)
    assert found.reading_warm_share is not None and 0 < found.reading_warm_share < 1
    assert len(found.verdict) == 3
    assert json.loads(found.to_json())["layouts"][0]["name"] == "files"


def test_the_bounds_hold(tmp_path: Path, temp: Path) -> None:
    data = arrays(tmp_path / "data")
    begun = time.monotonic()
    found = run(data, temp, seconds=2, max_files=1)
    assert (found.samples, found.whole_files) == (1, 30)
    assert time.monotonic() - begun < 40  # libraries may have to be imported first
    assert any("say little" in note for note in found.notes)
    one = (data / "000.npy").stat().st_size
    assert run(data, temp, max_bytes=5 * one).samples == 5
    with pytest.raises(UsageError, match="within the bound of 100 bytes"):
        run(data, temp, max_bytes=100)


def test_files_that_nothing_decodes_are_only_read(tmp_path: Path, temp: Path) -> None:
    (tmp_path / "data").mkdir()
    for n in range(20):
        (tmp_path / f"data/{n}.xyz").write_bytes(os.urandom(500))
    found = run(tmp_path / "data", temp)
    assert (found.decoder, found.reading_warm_share) == (None, None)
    assert {each.form for each in found.layouts} == {"encoded"}
    assert found.verdict[0].startswith("Files of this kind are not decoded here")


def test_broken_samples_are_counted(tmp_path: Path, temp: Path) -> None:
    data = arrays(tmp_path / "data", 20)
    (data / "000.npy").write_bytes(b"broken")
    (data / "001.npy").write_bytes(b"")
    found = run(data, temp)
    assert found.samples == 18
    assert "2 files were left out: they cannot be read or decoded" in found.notes
    for path in data.iterdir():
        path.write_bytes(b"broken")
    with pytest.raises(UsageError, match="no file could be part of the sample: 20 of them cannot"):
        run(data, temp)
    assert os.listdir(temp) == []


@pytest.mark.parametrize(("where", "error"), [("fill", KeyboardInterrupt), ("cold", RuntimeError)])
def test_nothing_is_left_when_it_is_broken_off(error, where, tmp_path, temp, monkeypatch):
    owner, name = (Layout, "fill") if where == "fill" else (probe, "make_cold")
    real, calls = getattr(owner, name), iter(range(3))

    def break_off(*args: Any) -> Any:
        if next(calls, None) is not None:
            return real(*args)
        (folder,) = temp.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        raise error

    monkeypatch.setattr(owner, name, break_off)
    data = arrays(tmp_path / "data")
    before = state(data)
    with pytest.raises(error):
        run(data, temp, seconds=4)
    assert (state(data), os.listdir(temp)) == (before, [])


def test_data_that_cannot_be_written_to_is_probed_all_the_same(tmp_path: Path, temp: Path) -> None:
    data = arrays(tmp_path / "data", 5)
    refused = ran(["mount", "--bind", "-o", "ro", data, data]).returncode
    if refused:
        for path in [*data.iterdir(), data]:
            path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        assert run(data, temp).samples == 5
    finally:
        if not refused:
            ran(["umount", data], check=True)
        data.chmod(0o700)


def test_with_little_room_the_sample_is_smaller(tmp_path, temp, monkeypatch):
    data = arrays(tmp_path / "data", 200)
    monkeypatch.setattr(probe, "room", lambda path: 2_000_000)
    assert 0 < run(data, temp, seconds=3).samples < 200
    monkeypatch.setattr(probe, "room", lambda path: 100)
    with pytest.raises(UsageError, match="name a roomier folder"):
        run(data, temp)
    assert os.listdir(temp) == []
