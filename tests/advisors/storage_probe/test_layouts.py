"""Layouts give back exactly what was put into them; what cannot be stored or decoded is told."""

import io
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe.decoders import decoder_for
from loaderscope.advisors.storage_probe.layouts import FORMATS, Layout
from loaderscope.advisors.storage_probe.run_probe import read_samples
from started import ran

FORMAT = {each.name: each for each in FORMATS}
COUNT = 40


def filled(name: str, folder: Path, samples: list[Any], seconds: float = 60, **how: Any) -> Layout:
    kind = replace(FORMAT[name], **how)
    pytest.importorskip(kind.module or "numpy")
    layout = Layout(kind, folder / name)
    layout.fill(samples, seconds)
    return layout


@pytest.mark.parametrize("name", FORMAT)
def test_samples_come_back_as_they_were_in_the_order_asked_for(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = [0, *rng.choice((1, 100, 4096, 60_000), COUNT - 1)]
    samples: list[Any] = [rng.bytes(size) for size in sizes]
    if FORMAT[name].form == "decoded":
        samples = [rng.integers(0, 200, (5, 7, 3)).astype(np.int16) for _ in sizes]
    layout = filled(name, tmp_path, samples)
    order = list(range(COUNT))
    if FORMAT[name].order == "shuffled":
        random.Random(1).shuffle(order)
    assert (layout.reason, layout.count) == (None, COUNT)
    for index, found in zip(order, layout.format.read(layout, order), strict=True):
        if FORMAT[name].form == "decoded":
            assert found.flags.writeable  # no view of a mapping that is closed by now
            np.testing.assert_array_equal(found, samples[index], strict=True)
        else:
            assert type(found) is bytes and found == samples[index]
    assert layout.disk_bytes() >= sum(map(len, samples)) // 2


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (np.zeros((2, 4), np.uint8), "(2, 3) uint8 and (2, 4) uint8"),
        (np.zeros((2, 3), np.float32), "float32"),
        (np.array([print], dtype=object), "do not decode to one array of numbers"),
    ],
)
def test_one_array_needs_numbers_of_one_shape(other: Any, says: str, tmp_path: Path) -> None:
    assert says in (filled("array", tmp_path, [np.zeros((2, 3), np.uint8), other]).reason or "")


@pytest.mark.parametrize(("name", "module"), [("lmdb", "lmdb"), ("arrow", "pyarrow")])
def test_a_missing_library_names_the_extra(name, module, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    layout = Layout(FORMAT[name], tmp_path)
    layout.fill([b"x"], 1)
    assert layout.reason == f'needs {module}: pip install "loaderscope[storage]"'


def laid(folder: Path, *contents: bytes) -> list[tuple[str, int]]:
    """Files of these contents, and one that is gone."""
    for n, data in enumerate(contents):
        (folder / f"{n}").write_bytes(data)
    return [(str(folder / f"{n}"), 1) for n in range(len(contents) + 1)]


def test_broken_files_are_left_out_and_counted(tmp_path: Path) -> None:
    files = laid(tmp_path, b"[1,2]", b"broken", b"[3,4]")
    found = read_samples(files, lambda data: np.array(json.loads(data)), 99, math.inf)
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
        FORMAT["tar"].write(layout, ((time.sleep(0.05), sample)[1] for sample in samples))

    layout = filled("tar", tmp_path, [b"x"] * 40, 0.2, write=slowly)
    assert 0 < layout.count < 40
    assert [*layout.format.read(layout, range(layout.count))] == [b"x"] * layout.count


def test_a_library_that_fails_is_that_layouts_reason(tmp_path: Path) -> None:
    def fall_over(*_: object) -> Any:
        raise RuntimeError("it fell\x1b over")

    reason = filled("tar", tmp_path, [b"a"], write=fall_over).reason or ""
    assert reason.startswith("the samples cannot be stored: it fell") and reason.isprintable()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    (point := tmp_path / "small").mkdir()
    if ran(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", point]).returncode:
        pytest.skip("this user may not mount")
    yield point
    ran(["umount", point], check=True)


@pytest.mark.parametrize("name", ["files", "lmdb"])
def test_a_disk_that_becomes_full_is_the_layouts_reason(name: str, small: Path) -> None:
    layout = filled(name, small, [os.urandom(300_000) for _ in range(100)])
    assert (layout.reason or "").startswith("the samples cannot be stored: ")


def decoded(suffix: str, data: bytes) -> Any:
    _, decoder, why = decoder_for(suffix)
    assert decoder is not None, why
    return decoder(data)


def saved(save: Any, *given: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    save(target, *given, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("suffix", "mode", "format_", "shape"),
    [
        (".png", "L", "PNG", (3, 5)),
        (".png", "P", "PNG", (3, 5, 3)),
        (".jpg", "RGB", "JPEG", (3, 5, 3)),
        (".tif", "RGB", "TIFF", (3, 5, 3)),
    ],
)
def test_pictures_become_arrays_in_the_mode_data_sets_use(suffix, mode, format_, shape):
    picture = pytest.importorskip("PIL.Image").new(mode, (5, 3), 1)
    array = decoded(suffix, saved(picture.save, format_))
    assert (array.shape, array.dtype) == (shape, np.uint8)


def test_arrays() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for suffix, save in ((".npy", np.save), (".npz", np.savez_compressed)):
        np.testing.assert_array_equal(decoded(suffix, saved(save, array)), array)
    assert set(decoded(".npz", saved(np.savez, a=array, b=array[0]))) == {"a", "b"}
    with pytest.raises(ValueError, match="allow_pickle"):  # a pickle is never loaded
        decoded(".npy", saved(np.save, np.array([print], dtype=object), allow_pickle=True))


def test_broken_files_raise_what_can_be_counted_and_unknown_ones_are_not_decoded() -> None:
    for suffix in (".png", ".npy", ".npz"):
        with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
            decoded(suffix, b"\xff\xfe\x00broken")
    assert decoder_for(".xyz") == (None, None, ".xyz: no decoder is known here")
    assert decoder_for("")[1] is None
