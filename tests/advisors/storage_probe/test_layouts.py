"""Every layout gives back exactly what was put into it, in the order asked for, from memory of its
own. What cannot be decoded or converted is counted, and a full disk is told, not hidden."""

from __future__ import annotations

import io
import json
import math
import os
import random
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe.decoders import decoder_for
from loaderscope.advisors.storage_probe.layouts import FORMATS, Format, Layout
from loaderscope.advisors.storage_probe.run_probe import read_samples

BY_NAME = {each.name: each for each in FORMATS}
COUNT = 40


def each_with(is_meant: Callable[[Format], object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", [*filter(is_meant, FORMATS)], ids=lambda each: each.name)


each_encoded = each_with(lambda each: each.form == "encoded")
each_decoded = each_with(lambda each: each.form == "decoded")


def filled(kind: Format, folder: Path, samples: list[Any]) -> Layout:
    pytest.importorskip(kind.module or "numpy")
    layout = Layout(kind, folder / kind.name)
    layout.fill(samples, 60)
    return layout


def read(layout: Layout, order: Iterable[int]) -> list[Any]:
    assert layout.reason is None
    return list(layout.format.read(layout, [*order]))


def whole(layout: Layout) -> list[Any]:
    return read(layout, range(layout.count))


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
    got = read(layout, order)
    assert got == [samples[index] for index in order]
    assert {*map(type, got)} == {bytes} and layout.count == COUNT
    assert layout.disk_bytes() >= sum(map(len, samples)) // 2


@each_decoded
@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_the_arrays_are_the_decoders_own(kind: Format, dtype: str, tmp_path: Path) -> None:
    samples = arrays(dtype=dtype)
    layout = filled(kind, tmp_path, samples)
    order = random.Random(1).sample(range(COUNT), COUNT)
    for index, array in zip(order, read(layout, order), strict=True):
        assert array.flags.writeable  # no view of a mapping that is closed by now
        np.testing.assert_array_equal(array, samples[index], strict=True)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (np.zeros((2, 4), np.uint8), "(2, 3) uint8 and (2, 4) uint8"),
        (np.zeros((2, 3), np.float32), "float32"),
    ],
)
def test_one_array_needs_one_shape_and_says_which_differ(other, says, tmp_path):
    layout = filled(ARRAY, tmp_path, [np.zeros((2, 3), np.uint8), other])
    assert layout.reason is not None and says in layout.reason


@each_decoded
def test_arrays_of_objects_are_never_stored(kind: Format, tmp_path: Path) -> None:
    layout = filled(kind, tmp_path, [np.zeros(1), np.array([print], dtype=object)])
    assert "do not decode to one array of numbers" in (layout.reason or "")


@each_with(lambda each: each.module)
def test_a_missing_library_names_the_extra(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, str(kind.module), None)
    layout = Layout(kind, tmp_path)
    layout.fill([b"x"], 1)
    assert layout.reason == f'needs {kind.module}: pip install "loaderscope[storage]"'


FILES, LMDB, TAR, ARRAY = (BY_NAME[name] for name in ("files", "lmdb", "tar", "array"))


def row(data: bytes) -> Any:
    return np.array(json.loads(data), np.uint8)


def laid(folder: Path, *contents: bytes) -> list[tuple[str, int]]:
    """Files of these contents, and one that is gone."""
    for n, data in enumerate(contents):
        (folder / f"{n}").write_bytes(data)
    return [(str(folder / f"{n}"), 1) for n in range(len(contents) + 1)]


def test_broken_files_are_left_out_and_counted(tmp_path: Path) -> None:
    found = read_samples(laid(tmp_path, b"[1,2]", b"broken", b"[3,4]"), row, 99, math.inf)
    assert found.encoded == [b"[1,2]", b"[3,4]"]
    assert [each.tolist() for each in found.decoded] == [[1, 2], [3, 4]]
    assert found.skipped == len(found.decode_s) == 2


def test_decoding_stops_at_the_bound_and_reading_goes_on(tmp_path: Path) -> None:
    files = laid(tmp_path, b"a", b"b", b"c", b"d")
    found = read_samples(files, lambda data: np.full(400, data[0], np.uint8), 1000, math.inf)
    assert (len(found.encoded), len(found.decoded)) == (4, 2)


def test_the_time_for_reading_and_storing_is_kept(tmp_path: Path) -> None:
    assert len(read_samples(laid(tmp_path, b"x", b"y"), None, 99, 0.0).encoded) == 1

    def slowly(layout: Layout, samples: Any) -> None:
        TAR.write(layout, ((time.sleep(0.05), sample)[1] for sample in samples))

    layout = Layout(replace(TAR, write=slowly), tmp_path / "tar")
    layout.fill([b"x"] * 40, 0.2)
    assert 0 < layout.count < 40
    assert whole(layout) == [b"x"] * layout.count


def test_a_library_that_fails_is_that_layouts_reason(tmp_path: Path) -> None:
    def fall_over(*_: object) -> Any:
        raise RuntimeError("it fell\x1b over")

    layout = filled(replace(TAR, write=fall_over), tmp_path, [b"a"])
    assert layout.reason is not None
    assert layout.reason.startswith("the samples cannot be stored: it fell")
    assert layout.reason.isprintable()


@pytest.mark.parametrize("kind", [FILES, LMDB], ids=lambda kind: kind.name)
def test_a_disk_that_becomes_full_is_the_layouts_reason(kind, small):
    layout = filled(kind, small, [os.urandom(300_000) for _ in range(100)])
    assert (layout.reason or "").startswith("the samples cannot be stored: ")


def decoded(suffix: str, data: bytes) -> Any:
    _, decoder, why = decoder_for(suffix)
    assert decoder is not None, why
    return decoder(data)


def picture(mode: str, format_: str = "PNG", size: tuple[int, int] = (5, 3)) -> bytes:
    image = pytest.importorskip("PIL.Image")
    target = io.BytesIO()
    image.new(mode, size, 1).save(target, format_)
    return target.getvalue()


def saved(save: Any, *arrays: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    save(target, *arrays, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("suffix", "mode", "format_", "shape"),
    [
        (".png", "RGB", "PNG", (3, 5, 3)),
        (".png", "L", "PNG", (3, 5)),
        (".png", "P", "PNG", (3, 5, 3)),
        (".jpg", "RGB", "JPEG", (3, 5, 3)),
        (".tif", "RGB", "TIFF", (3, 5, 3)),
    ],
)
def test_pictures_become_arrays_in_the_mode_data_sets_use(suffix, mode, format_, shape):
    array = decoded(suffix, picture(mode, format_))
    assert (array.shape, array.dtype) == (shape, np.uint8)


def test_arrays() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for suffix, save in ((".npy", np.save), (".npz", np.savez_compressed)):
        np.testing.assert_array_equal(decoded(suffix, saved(save, array)), array)
    assert set(decoded(".npz", saved(np.savez, a=array, b=array[0]))) == {"a", "b"}
    with pytest.raises(ValueError, match="allow_pickle"):  # a pickle is never loaded
        decoded(".npy", saved(np.save, np.array([print], dtype=object), allow_pickle=True))


@pytest.mark.parametrize("suffix", [".png", ".npy", ".npz"])
@pytest.mark.parametrize("data", [b"\xff\xfe\x00broken", zlib.compress(b"x")])
def test_broken_files_raise_what_can_be_counted(suffix: str, data: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
        decoded(suffix, data)


def test_an_unknown_suffix_says_that_it_is_not_decoded() -> None:
    assert decoder_for(".xyz") == (None, None, ".xyz: no decoder is known here")
    assert decoder_for("")[1] is None
