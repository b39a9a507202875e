"""Every layout gives back exactly what was put into it, in the order asked for, from memory of its
own."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Format, Layout, NotStorable

BY_NAME = {each.name: each for each in FORMATS}
COUNT = 40
BYTES = 1 << 20

each_encoded, each_decoded, each_one_shape, each_library = (
    pytest.mark.parametrize(
        "kind", [each for each in FORMATS if chosen(each)], ids=lambda e: e.name
    )
    for chosen in (
        lambda each: each.form == "encoded",
        lambda each: each.form == "decoded",
        lambda each: each.one_shape,
        lambda each: each.module,
    )
)


def made(kind: Format, folder: Path, count: int = COUNT) -> Layout:
    layout = Layout(kind, folder / kind.name, BYTES, count)
    layout.load()
    if layout.reason is not None:
        pytest.skip(f"no {kind.module} here")
    return layout


def filled(kind: Format, folder: Path, samples: list[Any]) -> Layout:
    layout = made(kind, folder, len(samples))
    layout.begin(samples[0])
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


@each_encoded
def test_the_bytes_are_the_files_own(kind: Format, tmp_path: Path) -> None:
    samples = blobs()
    layout = filled(kind, tmp_path, samples)
    order = list(range(COUNT))
    if kind.order == "shuffled":
        random.Random(1).shuffle(order)
    with layout.reading() as read:
        assert list(read(order)) == [samples[index] for index in order]
        first = order[:7]
        assert list(read(first)) == [samples[index] for index in first]  # a second pass begins anew
    assert all(type(sample) is bytes for sample in samples)
    assert layout.count == COUNT
    assert layout.stored_bytes == sum(map(len, samples))
    assert layout.disk_bytes() >= layout.stored_bytes // 2


@each_decoded
@pytest.mark.parametrize("dtype", ["uint8", "float32", ">i2", "bool"])
def test_the_arrays_are_the_decoders_own(kind: Format, dtype: str, tmp_path: Path) -> None:
    samples = arrays(dtype=dtype)
    layout = filled(kind, tmp_path, samples)
    order = random.Random(1).sample(range(COUNT), COUNT)
    with layout.reading() as read:
        got = list(read(order))
    for index, array in zip(order, got, strict=True):
        assert array.dtype == samples[index].dtype
        assert array.flags.writeable  # no view of a mapping that is closed by now
        np.testing.assert_array_equal(array, samples[index])


@each_one_shape
def test_one_array_needs_one_shape_and_says_which_differ(kind: Format, tmp_path: Path) -> None:
    layout = made(kind, tmp_path)
    layout.begin(np.zeros((2, 3), np.uint8))
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
    layout = filled(BY_NAME["lmdb-decoded"], tmp_path, samples)
    with layout.reading() as read:
        for got, sample in zip(read(range(3)), samples, strict=True):
            assert got.dtype == sample.dtype
            np.testing.assert_array_equal(got, sample)


@each_decoded
def test_arrays_of_objects_are_never_stored(kind: Format, tmp_path: Path) -> None:
    layout = made(kind, tmp_path)
    layout.begin(np.zeros(1))
    with pytest.raises(NotStorable, match="objects"):
        layout.add(np.array([print], dtype=object))
    layout.give_up("")


def test_arrow_keeps_several_groups(tmp_path: Path) -> None:
    samples = [bytes([n]) * 1_500_000 for n in range(7)]  # three a group
    layout = filled(BY_NAME["arrow"], tmp_path, samples)
    with layout.reading() as read:
        assert list(read([6, 0, 3, 2])) == [samples[n] for n in (6, 0, 3, 2)]


@each_library
def test_a_missing_library_names_the_extra(
    kind: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = made(kind, tmp_path)
    monkeypatch.setitem(sys.modules, str(kind.module), None)
    layout.load()
    assert layout.reason == f'needs {kind.module}: pip install "loaderscope[storage]"'
