"""Every layout gives back exactly what was put into it, in the order asked for, from memory of its
own."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Format, Layout

BY_NAME = {each.name: each for each in FORMATS}
COUNT = 40


def each_with(is_meant: Callable[[Format], object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", [*filter(is_meant, FORMATS)], ids=lambda each: each.name)


each_encoded = each_with(lambda each: each.form == "encoded")
each_decoded = each_with(lambda each: each.form == "decoded")


def filled(kind: Format, folder: Path, samples: list[Any]) -> Layout:
    layout = Layout(kind, folder / kind.name)
    if layout.reason is not None:
        pytest.skip(f"no {kind.module} here")
    layout.fill(samples, math.inf)
    return layout


def read(layout: Layout, order: Iterable[int]) -> list[Any]:
    assert layout.reason is None
    with layout.format.open(layout) as reading:
        return list(map(reading, order))


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
    got = read(layout, [*order, *order[:7]])  # a second pass begins anew
    assert got == [samples[index] for index in [*order, *order[:7]]]
    assert all(type(sample) is bytes for sample in got)
    assert layout.count == COUNT
    assert layout.disk_bytes() >= sum(map(len, samples)) // 2


@each_decoded
@pytest.mark.parametrize("dtype", ["uint8", "float32", ">i2", "bool"])
def test_the_arrays_are_the_decoders_own(kind: Format, dtype: str, tmp_path: Path) -> None:
    samples = arrays(dtype=dtype)
    layout = filled(kind, tmp_path, samples)
    order = random.Random(1).sample(range(COUNT), COUNT)
    for index, array in zip(order, read(layout, order), strict=True):
        assert array.dtype == samples[index].dtype
        assert array.flags.writeable  # no view of a mapping that is closed by now
        np.testing.assert_array_equal(array, samples[index])


@each_with(lambda each: each.one_shape)
@pytest.mark.parametrize(
    ("other", "says"),
    [
        (np.zeros((2, 4), np.uint8), "(2, 3) uint8 and (2, 4) uint8"),
        (np.zeros((2, 3), np.float32), "float32"),
    ],
)
def test_one_array_needs_one_shape_and_says_which_differ(kind, other, says, tmp_path):
    layout = filled(kind, tmp_path, [np.zeros((2, 3), np.uint8), other])
    assert layout.reason is not None and says in layout.reason
    assert not layout.folder.exists()


def test_lmdb_keeps_arrays_of_any_shape(tmp_path: Path) -> None:
    turned = np.arange(6).reshape(1, 2, 3)[:, ::-1]
    samples = [np.float64(3).reshape(()), np.zeros((0, 4), np.int64), turned]
    layout = filled(BY_NAME["lmdb-decoded"], tmp_path, samples)
    for got, sample in zip(read(layout, range(3)), samples, strict=True):
        assert got.dtype == sample.dtype
        np.testing.assert_array_equal(got, sample)


@each_decoded
def test_arrays_of_objects_are_never_stored(kind: Format, tmp_path: Path) -> None:
    layout = filled(kind, tmp_path, [np.zeros(1), np.array([print], dtype=object)])
    assert layout.reason == "samples hold Python objects"


def test_arrow_keeps_several_groups(tmp_path: Path) -> None:
    samples = [bytes([n]) * 1_500_000 for n in range(7)]  # three a group
    layout = filled(BY_NAME["arrow"], tmp_path, samples)
    assert read(layout, [6, 0, 3, 2]) == [samples[n] for n in (6, 0, 3, 2)]


@each_with(lambda each: each.module)
def test_a_missing_library_names_the_extra(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, str(kind.module), None)
    layout = Layout(kind, tmp_path)
    assert layout.reason == f'needs {kind.module}: pip install "loaderscope[storage]"'
