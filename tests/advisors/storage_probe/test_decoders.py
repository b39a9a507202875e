"""Decoders by suffix: what they make of real files, and what they refuse."""

from __future__ import annotations

import io
import json
import wave
import zlib
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe import decoders
from loaderscope.advisors.storage_probe.decoders import decoder_for


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
    ("mode", "shape"), [("RGB", (3, 5, 3)), ("L", (3, 5)), ("RGBA", (3, 5, 4)), ("P", (3, 5, 3))]
)
def test_pictures_become_arrays_in_the_mode_data_sets_use(
    mode: str, shape: tuple[int, ...]
) -> None:
    array = decoded(".png", picture(mode))
    assert (array.shape, array.dtype) == (shape, np.uint8)


@pytest.mark.parametrize(
    ("suffix", "format_"), [(".jpg", "JPEG"), (".webp", "WEBP"), (".bmp", "BMP"), (".tif", "TIFF")]
)
def test_every_picture_suffix_is_decoded(suffix: str, format_: str) -> None:
    assert decoded(suffix, picture("RGB", format_)).shape == (3, 5, 3)


def test_a_picture_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "MAX_DECODED_BYTES", 1000)
    with pytest.raises(decoders.TooLarge):
        decoded(".png", picture("L", size=(100, 100)))


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


def test_a_zip_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    target = io.BytesIO()
    np.savez_compressed(target, np.zeros(1 << 20))
    monkeypatch.setattr(decoders, "MAX_DECODED_BYTES", 1 << 20)
    with pytest.raises(decoders.TooLarge):
        decoded(".npz", target.getvalue())


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
