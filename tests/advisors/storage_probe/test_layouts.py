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
import wave
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe import convert as converting
from loaderscope.advisors.storage_probe import decoders
from loaderscope.advisors.storage_probe.convert import Samples, convert
from loaderscope.advisors.storage_probe.decoders import Decoder, decoder_for
from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Format, Layout
from loaderscope.profiler.base.errors import UsageError

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
    order += order[:7]  # a second pass begins anew
    got = read(layout, order)
    assert got == [samples[index] for index in order]
    assert {*map(type, got)} == {bytes} and layout.count == COUNT
    assert layout.disk_bytes() >= sum(map(len, samples)) // 2


@each_decoded
@pytest.mark.parametrize("dtype", ["uint8", ">i2"])
def test_the_arrays_are_the_decoders_own(kind: Format, dtype: str, tmp_path: Path) -> None:
    samples = arrays(dtype=dtype)
    layout = filled(kind, tmp_path, samples)
    order = random.Random(1).sample(range(COUNT), COUNT)
    for index, array in zip(order, read(layout, order), strict=True):
        assert array.flags.writeable  # no view of a mapping that is closed by now
        np.testing.assert_array_equal(array, samples[index], strict=True)


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
        np.testing.assert_array_equal(got, sample, strict=True)


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


FILES, LMDB, TAR, ARRAY, DECODED_LMDB = (
    BY_NAME[name] for name in ("files", "lmdb", "tar", "array", "lmdb-decoded")
)
ROW = Decoder("json", "rows", lambda data: np.array(json.loads(data), np.uint8))


def converted(
    folder: Path,
    kinds: list[Format],
    contents: list[bytes],
    decoder: Decoder | None = None,
    most: int = 1 << 20,
    seconds: float = 20,
) -> tuple[list[Layout], Samples]:
    """Files of these contents, and one that is gone, in layouts of these kinds."""
    folder.mkdir(exist_ok=True)
    for n, data in enumerate(contents):
        (folder / f"{n}").write_bytes(data)
    files = [(str(folder / f"{n}"), 1) for n in range(len(contents) + 1)]
    layouts = [Layout(kind, folder / kind.name) for kind in kinds]
    return layouts, convert(files, layouts, decoder, most, time.monotonic() + seconds)


def test_broken_files_are_left_out_of_every_layout_and_counted(tmp_path: Path) -> None:
    contents = [b"[1,2]", b"broken", b"[3,4]"]
    layouts, done = converted(tmp_path, [FILES, TAR, ARRAY], contents, ROW)
    assert (len(done.encoded), len(done.decoded)) == (2, 2)
    assert done.skipped == {
        "does not decode (JSONDecodeError)": 1,
        "cannot be read (No such file or directory)": 1,
    }
    assert whole(layouts[0]) == whole(layouts[1]) == [b"[1,2]", b"[3,4]"]
    np.testing.assert_array_equal(whole(layouts[2]), [[1, 2], [3, 4]])
    assert all(layout.convert_s > 0 and layout.source_bytes == 10 for layout in layouts)


def test_layouts_that_cannot_hold_the_samples_say_why_and_the_others_go_on(tmp_path: Path) -> None:
    contents = [b"[1,2]", b"[1,2,3]", b"[1,2]"]
    layouts, done = converted(tmp_path, [FILES, ARRAY, DECODED_LMDB], contents, ROW)
    assert len(done.encoded) == 3
    assert "(2,) uint8 and (3,) uint8" in (layouts[1].reason or "")
    assert not layouts[1].folder.exists()
    assert [array.tolist() for array in whole(layouts[2])] == [[1, 2], [1, 2, 3], [1, 2]]
    decoder = Decoder("json", "texts", json.loads)
    texts, _ = converted(tmp_path / "dicts", [FILES, ARRAY], [b'{"a": 1}', b"{}"], decoder)
    assert texts[1].reason == "samples do not decode to one array each"


def test_decoded_layouts_stop_at_the_bound_and_the_others_go_on(tmp_path: Path) -> None:
    blow_up = Decoder("x", "x", lambda data: np.full(400, data[0], np.uint8))
    contents = [b"a", b"b", b"c", b"d"]
    layouts, _ = converted(tmp_path, [FILES, ARRAY], contents, blow_up, most=1000)
    assert (layouts[0].count, layouts[1].count, layouts[1].source_bytes) == (4, 2, 2)
    assert [row[0] for row in whole(layouts[1])] == [ord("a"), ord("b")]
    (_, too_big), _ = converted(tmp_path / "x", [FILES, ARRAY], [b"a"], blow_up, most=100)
    assert "raise --bytes" in (too_big.reason or "")


def test_the_time_for_copying_is_kept(tmp_path: Path) -> None:
    def slowly(layout: Layout, samples: Any) -> None:
        TAR.write(layout, ((time.sleep(0.05), sample)[1] for sample in samples))

    kinds = [FILES, replace(TAR, write=slowly)]
    with pytest.raises(UsageError, match="raise --seconds"):
        converted(tmp_path / "none", kinds, [b"x"] * 40, seconds=-1)
    layouts, _ = converted(tmp_path, kinds, [b"x"] * 40, seconds=1)
    assert 0 < layouts[1].count < layouts[0].count == 40
    assert layouts[1].source_bytes == layouts[1].count


def test_free_space_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([1 << 40, 0])
    monkeypatch.setattr(converting, "free_bytes", lambda path: next(left))
    layouts, _ = converted(tmp_path, [FILES, TAR], [b"x"])
    assert [each.reason for each in layouts] == [None, "free space ran low"]


def fall_over(*_: object) -> Any:
    raise RuntimeError("it fell\x1b over")


def wrong(layout: Layout, samples: Any) -> None:
    TAR.write(layout, (b"?" + sample for sample in samples))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"write": fall_over}, "storing samples failed (RuntimeError: it fell"),
        ({"open": fall_over}, "storing samples failed (RuntimeError: it fell"),
        ({"write": wrong}, "it gave other samples than were stored"),
    ],
)
def test_a_library_that_fails_is_that_layouts_reason(broken, reason, tmp_path):
    layouts, _ = converted(tmp_path, [FILES, replace(TAR, **broken)], [b"a"])
    assert layouts[0].reason is None
    assert layouts[1].reason is not None
    assert layouts[1].reason.startswith(reason) and layouts[1].reason.isprintable()
    assert not layouts[1].folder.exists()


@pytest.mark.parametrize("kind", [FILES, LMDB], ids=lambda kind: kind.name)
def test_a_disk_that_becomes_full_ends_the_probe_with_one_sentence(
    kind, small, tmp_path, monkeypatch
):
    pytest.importorskip(kind.module or "numpy")
    monkeypatch.setattr(converting, "free_bytes", lambda path: 1 << 40)
    contents = [os.urandom(300_000) for _ in range(100)]
    with pytest.raises(UsageError, match="disk became full"):  # `small` lies in `tmp_path`
        converted(tmp_path, [replace(kind, name="small/out")], contents, most=1 << 25)


def decoded(suffix: str, data: bytes) -> Any:
    decoder, why = decoder_for(suffix)
    assert decoder is not None, why
    return decoder.decode(data)


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


@pytest.mark.parametrize(("suffix", "most"), [(".png", 1000), (".npz", 1 << 20)])
def test_what_would_fill_the_memory_is_refused(suffix, most, monkeypatch):
    bomb = saved(np.savez_compressed, np.zeros(1 << 20))
    monkeypatch.setattr(decoders, "MAX_DECODED_BYTES", most)
    with pytest.raises(decoders.TooLarge):
        decoded(suffix, picture("L", size=(100, 100)) if suffix == ".png" else bomb)


def test_arrays() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for suffix, save in ((".npy", np.save), (".npz", np.savez_compressed)):
        np.testing.assert_array_equal(decoded(suffix, saved(save, array)), array)
    assert set(decoded(".npz", saved(np.savez, a=array, b=array[0]))) == {"a", "b"}
    with pytest.raises(ValueError, match="allow_pickle"):  # a pickle is never loaded
        decoded(".npy", saved(np.save, np.array([print], dtype=object), allow_pickle=True))


def test_texts() -> None:
    assert decoded(".json", json.dumps({"a": [1, 2]}).encode()) == {"a": [1, 2]}
    assert decoded(".csv", b'a,"b,c"\n1,2\n') == [["a", "b,c"], ["1", "2"]]
    assert decoded(".txt", "ä".encode()) == "ä"


@pytest.mark.parametrize(("width", "dtype"), [(1, "u1"), (2, "<i2"), (4, "<i4"), (3, "u1")])
def test_sounds(width: int, dtype: str) -> None:
    target = io.BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setparams((2, width, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(range(2 * width * 5)))
    array = decoded(".wav", target.getvalue())
    assert (array.shape[:2], array.dtype) == ((5, 2), np.dtype(dtype))
    assert array.tobytes() == bytes(range(2 * width * 5))


@pytest.mark.parametrize("suffix", [".png", ".npy", ".npz", ".json", ".wav", ".txt"])
@pytest.mark.parametrize("data", [b"\xff\xfe\x00broken", zlib.compress(b"x")])
def test_broken_files_raise_what_can_be_counted(suffix: str, data: bytes) -> None:
    decoder, _ = decoder_for(suffix)
    assert decoder is not None
    with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
        decoder.decode(data)


def test_an_unknown_suffix_says_that_it_is_not_decoded() -> None:
    assert decoder_for(".xyz") == (None, ".xyz: no decoder is known here")
    assert decoder_for("")[0] is None
