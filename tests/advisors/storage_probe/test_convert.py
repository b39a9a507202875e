"""Decoding and converting: what is left out is counted, and a full disk is told, not hidden."""

from __future__ import annotations

import io
import json
import os
import time
import wave
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe import decoders
from loaderscope.advisors.storage_probe.bounds import Bounds
from loaderscope.advisors.storage_probe.convert import convert
from loaderscope.advisors.storage_probe.decoders import Decoder, decoder_for
from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Format, Layout
from loaderscope.advisors.storage_probe.source import File
from loaderscope.profiler.base.errors import UsageError

BYTES = Bounds(1 << 20, 1000, 1.0)
FILES, LMDB, TAR, ARRAY, DECODED_LMDB = (
    next(each for each in FORMATS if each.name == name)
    for name in ("files", "lmdb", "tar", "array", "lmdb-decoded")
)


def soon() -> float:
    return time.monotonic() + 20


def sources(folder: Path, *contents: bytes) -> list[File]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{n}" for n in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    return [(str(path), path.stat().st_size) for path in paths]


def made(folder: Path, *kinds: Format) -> list[Layout]:
    folder.mkdir()
    return [Layout(kind, folder / kind.name) for kind in kinds]


ROW = Decoder("json", "rows", lambda data: np.array(json.loads(data), np.uint8))


def read(layout: Layout) -> list[Any]:
    with layout.format.open(layout) as reading:
        return [reading(number) for number in range(layout.count)]


def test_broken_files_are_left_out_of_every_layout_and_counted(tmp_path: Path) -> None:
    paths = sources(tmp_path / "data", b"[1,2]", b"broken", b"[3,4]")
    layouts = made(tmp_path / "out", FILES, TAR, ARRAY)
    done = convert([*paths, (str(tmp_path / "gone"), 1)], layouts, ROW, BYTES, soon())
    assert (len(done.encoded), len(done.decoded)) == (2, 2)
    assert done.skipped == {
        "does not decode (JSONDecodeError)": 1,
        "cannot be read (No such file or directory)": 1,
    }
    assert read(layouts[0]) == read(layouts[1]) == [b"[1,2]", b"[3,4]"]
    np.testing.assert_array_equal(read(layouts[2]), [[1, 2], [3, 4]])
    assert all(layout.convert_s > 0 and layout.source_bytes == 10 for layout in layouts)


def test_layouts_that_cannot_hold_the_samples_say_why_and_the_others_go_on(tmp_path: Path) -> None:
    paths = sources(tmp_path / "data", b"[1,2]", b"[1,2,3]", b"[1,2]")
    layouts = made(tmp_path / "out", FILES, ARRAY, DECODED_LMDB)
    done = convert(paths, layouts, ROW, BYTES, soon())
    assert len(done.encoded) == 3
    assert "(2,) uint8 and (3,) uint8" in (layouts[1].reason or "")
    assert not layouts[1].folder.exists()
    assert [array.tolist() for array in read(layouts[2])] == [[1, 2], [1, 2, 3], [1, 2]]
    texts = made(tmp_path / "texts", FILES, ARRAY)
    paths = sources(tmp_path / "dicts", b'{"a": 1}', b"{}")
    convert(paths, texts, Decoder("json", "texts", json.loads), BYTES, soon())
    assert texts[1].reason == "samples do not decode to one array each"


def test_decoded_layouts_stop_at_the_bound_and_the_others_go_on(tmp_path: Path) -> None:
    blow_up = Decoder("x", "x", lambda data: np.full(400, data[0], np.uint8))
    layouts = made(tmp_path / "out", FILES, ARRAY)
    paths = sources(tmp_path / "data", b"a", b"b", b"c", b"d")
    convert(paths, layouts, blow_up, BYTES._replace(max_bytes=1000), soon())
    assert (layouts[0].count, layouts[1].count) == (4, 2)
    assert layouts[1].source_bytes == 2
    assert [row[0] for row in read(layouts[1])] == [ord("a"), ord("b")]
    too_big = made(tmp_path / "more", FILES, ARRAY)
    convert(paths[:1], too_big, blow_up, BYTES._replace(max_bytes=100), soon())
    assert "raise --bytes" in (too_big[1].reason or "")


def test_the_time_for_copying_is_kept(tmp_path: Path) -> None:
    layouts = made(tmp_path / "out", FILES, replace(TAR, write=slowly))
    paths = sources(tmp_path / "data", *[b"x"] * 40)
    with pytest.raises(UsageError, match="raise --seconds"):
        convert(paths, layouts, None, BYTES, time.monotonic() - 1)
    convert(paths, layouts, None, BYTES, time.monotonic() + 1)
    assert 0 < layouts[1].count < layouts[0].count == 40
    assert layouts[1].source_bytes == layouts[1].count


def slowly(layout: Layout, samples: Iterable[bytes], most: int) -> None:
    TAR.write(layout, ((time.sleep(0.05), sample)[1] for sample in samples), most)


def test_free_space_is_asked_for_again(tmp_path: Path) -> None:
    left = iter([1 << 40, 0])
    layouts = made(tmp_path / "out", FILES, TAR)
    paths = sources(tmp_path / "data", b"x")
    convert(paths, layouts, None, BYTES, soon(), free=lambda path: next(left))
    assert [each.reason for each in layouts] == [None, "free space ran low"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("write", "storing samples failed (RuntimeError: it fell"),
        ("open", "storing samples failed (RuntimeError: it fell"),
        ("wrong", "it gave other samples than were stored"),
    ],
)
def test_a_library_that_fails_is_that_layouts_reason(
    broken: str, reason: str, tmp_path: Path
) -> None:
    def fall_over(*_: object) -> Any:
        raise RuntimeError("it fell\x1b over")

    def wrong(layout: Layout, samples: Iterable[bytes], most: int) -> None:
        TAR.write(layout, (b"?" + sample for sample in samples), most)

    kind = replace(TAR, **({"write": wrong} if broken == "wrong" else {broken: fall_over}))
    layouts = made(tmp_path / "out", FILES, kind)
    convert(sources(tmp_path / "data", b"a"), layouts, None, BYTES, soon())
    assert layouts[0].reason is None
    assert layouts[1].reason is not None
    assert layouts[1].reason.startswith(reason)
    assert layouts[1].reason.isprintable()
    assert not layouts[1].folder.exists()


@pytest.mark.parametrize("kind", [FILES, LMDB], ids=lambda kind: kind.name)
def test_a_disk_that_becomes_full_ends_the_probe_with_one_sentence(
    kind: Format, small: Path, tmp_path: Path
) -> None:
    paths = sources(tmp_path / "data", *(os.urandom(300_000) for _ in range(100)))
    layouts = made(small / "out", kind)
    layouts[0].load()
    if layouts[0].reason is not None:
        pytest.skip("no lmdb here")
    large = BYTES._replace(max_bytes=1 << 25)
    with pytest.raises(UsageError, match="disk became full"):
        convert(paths, layouts, None, large, soon(), free=lambda path: 1 << 40)


def decoded(suffix: str, data: bytes) -> Any:
    decoder, why = decoder_for(suffix)
    assert decoder is not None, why
    return decoder.decode(data)


def picture(mode: str, format_: str = "PNG", size: tuple[int, int] = (5, 3)) -> bytes:
    image = pytest.importorskip("PIL.Image")
    target = io.BytesIO()
    image.new(mode, size, 1).save(target, format_)
    return target.getvalue()


def saved(array: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    np.save(target, array, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("suffix", "mode", "format_", "shape"),
    [
        (".png", "RGB", "PNG", (3, 5, 3)),
        (".png", "L", "PNG", (3, 5)),
        (".png", "RGBA", "PNG", (3, 5, 4)),
        (".png", "P", "PNG", (3, 5, 3)),
        (".jpg", "RGB", "JPEG", (3, 5, 3)),
        (".webp", "RGB", "WEBP", (3, 5, 3)),
        (".bmp", "RGB", "BMP", (3, 5, 3)),
        (".tif", "RGB", "TIFF", (3, 5, 3)),
    ],
)
def test_pictures_become_arrays_in_the_mode_data_sets_use(
    suffix: str, mode: str, format_: str, shape: tuple[int, ...]
) -> None:
    array = decoded(suffix, picture(mode, format_))
    assert (array.shape, array.dtype) == (shape, np.uint8)


@pytest.mark.parametrize("suffix", [".png", ".npz"])
def test_what_would_fill_the_memory_is_refused(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = io.BytesIO()
    np.savez_compressed(bomb, np.zeros(1 << 20))
    data = picture("L", size=(100, 100)) if suffix == ".png" else bomb.getvalue()
    monkeypatch.setattr(decoders, "MAX_DECODED_BYTES", 1000 if suffix == ".png" else 1 << 20)
    with pytest.raises(decoders.TooLarge):
        decoded(suffix, data)


def test_arrays() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(decoded(".npy", saved(array)), array)
    target = io.BytesIO()
    np.savez_compressed(target, array)
    np.testing.assert_array_equal(decoded(".npz", target.getvalue()), array)
    target = io.BytesIO()
    np.savez(target, a=array, b=array[0])
    assert set(decoded(".npz", target.getvalue())) == {"a", "b"}


def test_a_pickle_is_never_loaded() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        decoded(".npy", saved(np.array([print], dtype=object), allow_pickle=True))


def test_texts() -> None:
    assert decoded(".json", json.dumps({"a": [1, 2]}).encode()) == {"a": [1, 2]}
    assert decoded(".csv", b'a,"b,c"\n1,2\n') == [["a", "b,c"], ["1", "2"]]
    assert decoded(".txt", "ä".encode()) == "ä"


@pytest.mark.parametrize(("width", "dtype"), [(1, "u1"), (2, "<i2"), (4, "<i4"), (3, "u1")])
def test_sounds(width: int, dtype: str) -> None:
    target = io.BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(width)
        sound.setframerate(8000)
        sound.writeframes(bytes(range(2 * width * 5)))
    array = decoded(".wav", target.getvalue())
    assert array.shape[:2] == (5, 2)
    assert array.dtype == np.dtype(dtype)
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
