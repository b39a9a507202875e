"""Turns a file's bytes into a sample, by the file's suffix, as most data sets do."""

from __future__ import annotations

import csv
import io
import json
import wave
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

PICTURES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"))

# A file that decodes to more than this is left out: it could fill the memory.
MAX_DECODED_BYTES = 1 << 30

# Modes that are kept; others (a palette, CMYK) become RGB, as in most data sets.
_MODES = ("L", "LA", "RGB", "RGBA", "I;16", "I", "F")


@dataclass(frozen=True)
class Decoder:
    """`decode` raises whatever its library raises. `things` names the samples: "pictures",
    "arrays"."""

    name: str
    things: str
    decode: Callable[[bytes], Any]


class TooLarge(ValueError):
    """It would decode to more than MAX_DECODED_BYTES."""


def decoder_for(suffix: str) -> tuple[Decoder | None, str | None]:
    """The decoder for a suffix; where there is none, why."""
    if suffix in PICTURES:
        try:
            image = import_module("PIL.Image")
        except ImportError:
            return None, 'decoding pictures needs Pillow: pip install "loaderscope[storage]"'
        return Decoder("PIL", "pictures", lambda data: _picture(image, data)), None
    if suffix in _DECODERS:
        return _DECODERS[suffix], None
    return None, f"{suffix or 'files without a suffix'}: no decoder is known here"


def _picture(image: Any, data: bytes) -> np.ndarray[Any, Any]:
    with image.open(io.BytesIO(data)) as opened:
        if opened.size[0] * opened.size[1] * 4 > MAX_DECODED_BYTES:
            raise TooLarge("decodes to too much")
        return np.asarray(opened if opened.mode in _MODES else opened.convert("RGB"))


def _npy(data: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


def _npz(data: bytes) -> Any:
    """Its array, or a dict of them where it holds several."""
    with np.load(io.BytesIO(data), allow_pickle=False) as opened:
        if sum(each.file_size for each in opened.zip.infolist()) > MAX_DECODED_BYTES:
            raise TooLarge("decodes to too much")
        arrays = {name: opened[name] for name in opened.files}
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays


def _wav(data: bytes) -> np.ndarray[Any, Any]:
    with wave.open(io.BytesIO(data)) as sound:
        width, channels = sound.getsampwidth(), sound.getnchannels()
        frames = sound.readframes(sound.getnframes())
    if width not in (1, 2, 4):
        return np.frombuffer(frames, np.uint8).reshape(-1, channels, width)
    return np.frombuffer(frames, {1: "u1", 2: "<i2", 4: "<i4"}[width]).reshape(-1, channels)


_DECODERS = {
    ".npy": Decoder("numpy", "arrays", _npy),
    ".npz": Decoder("numpy", "arrays", _npz),
    ".json": Decoder("json", "texts", json.loads),
    ".csv": Decoder("csv", "tables", lambda data: list(csv.reader(io.StringIO(data.decode())))),
    ".txt": Decoder("str", "texts", bytes.decode),
    ".wav": Decoder("wave", "sounds", _wav),
}
