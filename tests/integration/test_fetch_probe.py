"""Looks at real fetching: what was read, out of which files."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch.utils.data import DataLoader

import fetch_probe_data as data
import loaderscope
from closing import close_session
from loaderscope.profiler.base.liveness import Liveness
from loaderscope.profiler.record.fetch_probe import opens
from loaderscope.profiler.record.fetch_probe.containers import held_containers
from loaderscope.profiler.record.iterate.watch import loader_place
from loaderscope.profiler.store.run.run_reader import read_run
from loaderscope.profiler.store.sampled_fetches import SampledFetches

compiled = pytest.mark.skipif(opens.native is None, reason="opens are seen by the extension alone")


@pytest.fixture(scope="module")
def pngs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return data.make_pngs(tmp_path_factory.mktemp("data") / "pngs")


_held_before: dict[str, str] = {}


@pytest.fixture(autouse=True)
def held_before() -> None:
    """Containers this process has open already, by other tests, are none of a loader's here."""
    _held_before.clear()
    _held_before.update(held_containers("-"))


def looked(loader: Any, epochs: int = 1) -> SampledFetches:
    """What is seen of a loader that is looped over."""
    loader = loaderscope.watch(loader)
    for _ in range(epochs):
        for _ in loader:
            pass
    return looks_of(loader)


def looks_of(loader: Any) -> SampledFetches:
    folder, index = loader_place(loader)
    if isinstance(loader, DataLoader):
        loader._iterator = None  # persistent workers end, and write
    close_session()
    loaders = read_run(folder.parent, Liveness()).loaders
    (looks,) = (one.looks for one in loaders if one.index == index)
    own = tuple(each for each in looks.containers if each.path not in _held_before)
    return replace(looks, containers=own)


@compiled
@pytest.mark.parametrize(("workers", "context", "shuffle"), [(0, None, False), (2, "spawn", True)])
def test_one_picture_a_sample(pngs, workers, context, shuffle):
    torch.manual_seed(1)
    how: Any = {"num_workers": workers, "multiprocessing_context": context, "shuffle": shuffle}
    looks = looked(DataLoader(data.Files(pngs), 4, **how))
    sizes = [os.path.getsize(path) for path in pngs]
    size = sum(sizes) / len(sizes)
    assert looks.samples >= 6 * 4
    png = looks.suffixes[".png"]
    others = looks.opens - png.opens  # a fresh interpreter may read a file of its own beside them
    assert png.opens == looks.samples and others <= workers * (context == "spawn"), looks.suffixes
    assert looks.distinct == looks.opens and looks.reopened == 0
    assert looks.directories == len(looks.folders) == 1 + bool(others)
    assert looks.folders[os.path.dirname(pngs[0])] == png.opens
    assert png.sized > 0 and png.max_bytes <= max(sizes)
    assert png.bytes / png.sized == pytest.approx(size, rel=0.1)
    assert sum(mount.opens for mount in looks.mounts) == looks.opens
    assert any(pngs[0].startswith(mount.path) and mount.type for mount in looks.mounts)
    (epoch,) = looks.epochs
    assert (epoch.epoch, epoch.batches, epoch.samples) == (0, looks.batches, looks.samples)
    assert epoch.opens == looks.opens
    assert size <= epoch.read_bytes / epoch.samples <= size + 2000
    assert 1 <= epoch.read_calls / epoch.samples <= 6
    assert epoch.disk_bytes >= 0 and epoch.major_faults >= 0
    assert 0 < epoch.fetch_cpu_ns < epoch.fetch_ns == looks.fetch_ns
    assert looks.containers == () and looks.reasons == {}


@compiled
@pytest.mark.parametrize("files", [data.Files, data.Noisy])
@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
def test_epochs_are_told_apart_and_files_and_samples_known_again(pngs, workers, persistent, files):
    torch.manual_seed(1)
    how: Any = {"num_workers": workers, "persistent_workers": persistent, "shuffle": True}
    looks = looked(DataLoader(files(pngs[:64], 0.002), 2, **how), epochs=3)
    assert [epoch.epoch for epoch in looks.epochs] == [0, 1, 2]
    assert sum(epoch.samples for epoch in looks.epochs) == looks.samples
    assert sum(epoch.opens for epoch in looks.epochs) == looks.opens == looks.samples
    assert looks.distinct + looks.reopened == looks.opens
    assert looks.again >= 8 and looks.same == (looks.again if files is data.Files else 0)
    # Each process sees each file once, if it ends with the epoch.
    assert (looks.reopened > 0) == (workers == 0 or persistent)


@compiled
@pytest.mark.parametrize("workers", [0, 2])
def test_other_ways_of_fetching(pngs: list[str], workers: int) -> None:
    for dataset, batch_size in (
        (data.BatchedFiles(pngs), 4),
        (data.StreamedFiles(pngs), 4),
        (data.Files(pngs, pause_s=0.002), None),
    ):
        looks = looked(DataLoader(dataset, batch_size, num_workers=workers))
        assert looks.opens == looks.samples >= 4


@pytest.mark.parametrize("workers", [0, 1])
def test_containers(tmp_path: Path, workers: int) -> None:
    held = data.Held(tmp_path)
    looks = looked(DataLoader(held, 8, num_workers=workers))
    (container,) = looks.containers
    size = os.path.getsize(held.path)
    assert (container.kind, container.path, container.bytes) == ("memmap", held.path, size)
    assert looks.opens <= looks.samples / 4


def test_what_is_not_looked_at_says_why(pngs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not a torch DataLoader" in looked([torch.ones(1)] * 3).reasons["looks"]
    monkeypatch.setenv("LOADERSCOPE_INSPECT", "0")
    for workers in (0, 1):
        looks = looked(DataLoader(data.Files(pngs), 4, num_workers=workers))
        assert looks.batches == 0
        assert looks.reasons == {"looks": "not looked at: LOADERSCOPE_INSPECT=0"}


def _until_told(loader: Any) -> None:
    """Goes on until the signal of a worker's death has come, and raised."""
    with suppress(OSError, EOFError):
        for _ in loader:
            pass
    for _ in range(1000):
        time.sleep(0.01)


@compiled
def test_a_killed_worker_leaves_what_it_saw(pngs: list[str]) -> None:
    loader = loaderscope.watch(DataLoader(data.Deadly(pngs), 4, num_workers=1))
    # Torch raises as it hears of the death. The loop may end before, if the worker dies while torch
    # asks it for a batch's memory.
    with pytest.raises(RuntimeError, match="DataLoader worker"):
        _until_told(loader)
    looks = looks_of(loader)
    assert looks.opens == looks.samples >= 4
