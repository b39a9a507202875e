"""Every layout gives back exactly what was put into it, in the order asked for, from memory of its
own."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe.decoded import DecodedHdf5, DecodedLmdb, MappedArray
from loaderscope.advisors.storage_probe.encoded import Files, Hdf5, Lmdb
from loaderscope.advisors.storage_probe.layout import Layout, NotStorable
from loaderscope.advisors.storage_probe.tables import Arrow, Parquet
from loaderscope.advisors.storage_probe.tars import Shards, Tar

ENCODED = (Files, Lmdb, Hdf5, Arrow, Parquet, Tar, Shards)
DECODED = (MappedArray, DecodedLmdb, DecodedHdf5)
COUNT = 40
BYTES = 1 << 20


def filled(kind: type[Layout], folder: Path, samples: list[Any]) -> Layout:
    layout = kind(folder, BYTES, len(samples))
    if layout.load() is not None:
        pytest.skip(f"no {layout.module} here")
    layout.begin()
    for sample in samples:
        layout.add(sample)
    layout.finish()
    return layout


def blobs(seed: int = 0) -> list[bytes]:
    rng = random.Random(seed)
    return [b"", *(rng.randbytes(rng.choice((1, 100, 4096, 60_000))) for _ in range(COUNT - 1))]


def arrays(shape: tuple[int, ...] = (5, 7, 3), dtype: str = "uint8") -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 200, shape).astype(dtype) for _ in range(COUNT)]


@pytest.mark.parametrize("kind", ENCODED)
def test_the_bytes_are_the_files_own(kind: type[Layout], tmp_path: Path) -> None:
    samples = blobs()
    layout = filled(kind, tmp_path, samples)
    order = list(range(COUNT))
    if layout.order == "shuffled":
        random.Random(1).shuffle(order)
    with layout.reading() as read:
        assert list(read(order)) == [samples[index] for index in order]
        first = order[:7]
        assert list(read(first)) == [samples[index] for index in first]  # a second pass begins anew
    assert all(type(sample) is bytes for sample in samples)
    assert layout.count == COUNT
    assert layout.stored_bytes == sum(map(len, samples))
    assert layout.disk_bytes() >= layout.stored_bytes // 2


@pytest.mark.parametrize("kind", DECODED)
@pytest.mark.parametrize("dtype", ["uint8", "float32", ">i2", "bool"])
def test_the_arrays_are_the_decoders_own(kind: type[Layout], dtype: str, tmp_path: Path) -> None:
    samples = arrays(dtype=dtype)
    layout = filled(kind, tmp_path, samples)
    order = random.Random(1).sample(range(COUNT), COUNT)
    with layout.reading() as read:
        got = list(read(order))
    for index, array in zip(order, got, strict=True):
        assert array.dtype == samples[index].dtype
        assert array.flags.writeable  # no view of a mapping that is closed by now
        np.testing.assert_array_equal(array, samples[index])


@pytest.mark.parametrize("kind", [MappedArray, DecodedHdf5])
def test_one_array_needs_one_shape_and_says_which_differ(
    kind: type[Layout], tmp_path: Path
) -> None:
    layout = kind(tmp_path, BYTES, 4)
    layout.begin()
    layout.add(np.zeros((2, 3), np.uint8))
    with pytest.raises(NotStorable, match=r"\(2, 3\) uint8 and \(2, 4\) uint8"):
        layout.add(np.zeros((2, 4), np.uint8))
    with pytest.raises(NotStorable, match="float32"):
        layout.add(np.zeros((2, 3), np.float32))
    assert layout.count == 1
    layout.give_up("as it said")
    assert not layout.folder.exists()


def test_lmdb_keeps_arrays_of_any_shape(tmp_path: Path) -> None:
    samples = [
        np.float64(3).reshape(()),
        np.zeros((0, 4), np.int64),
        np.arange(6).reshape(1, 2, 3)[:, ::-1],
    ]
    layout = filled(DecodedLmdb, tmp_path, samples)
    with layout.reading() as read:
        for got, sample in zip(read(range(3)), samples, strict=True):
            assert got.dtype == sample.dtype
            np.testing.assert_array_equal(got, sample)


def test_arrays_of_objects_are_never_pickled(tmp_path: Path) -> None:
    for kind in DECODED:
        layout = kind(tmp_path, BYTES, 1)
        layout.begin()
        with pytest.raises(NotStorable, match=r"objects|plain"):
            layout.add(np.array([print], dtype=object))
        layout.give_up("")


def test_a_pass_over_parquet_reads_whole_groups(tmp_path: Path) -> None:
    layout = filled(Parquet, tmp_path, [bytes(1_500_000)] * 7)  # three a group
    assert [layout.pass_samples(wished) for wished in (1, 3, 4, 7, 100)] == [3, 3, 6, 7, 7]
    assert filled(Tar, tmp_path, [b"x"] * 7).pass_samples(4) == 4


def test_shards_are_several_tars(tmp_path: Path) -> None:
    samples = [bytes([n]) * (BYTES // 20) for n in range(20)]
    layout = filled(Shards, tmp_path, samples)
    assert 3 <= len(layout.paths()) <= 5
    with layout.reading() as read:
        assert list(read(range(20))) == samples


def test_shards_are_read_whole_on_every_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = filled(Shards, tmp_path, [b"a", b"b"])
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with layout.reading() as read:
        assert list(read(range(2))) == [b"a", b"b"]


@pytest.mark.parametrize("kind", [Lmdb, Hdf5, Arrow, Parquet, Shards, DecodedHdf5])
def test_a_missing_library_names_the_extra(
    kind: type[Layout], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = kind(tmp_path, BYTES, 1)
    assert layout.module is not None
    monkeypatch.setitem(sys.modules, layout.module, None)
    reason = layout.load()
    assert reason is not None
    assert 'pip install "loaderscope[storage]"' in reason
