"""Turns a file's bytes into a sample, by the file's suffix, as most data sets do."""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")

# Modes that are kept; others (a palette, CMYK) become RGB, as in most data sets.
_MODES = ("L", "LA", "RGB", "RGBA", "I;16", "I", "F")

Decoder = Callable[[bytes], Any]


def decoder_for(suffix: str) -> tuple[str | None, Decoder | None, str | None]:
    """The library that decodes files of this suffix, and how; where nothing does, why.

    A decoder raises whatever its library raises.
    """
    if suffix in (".npy", ".npz"):
        return "numpy", _arrays, None
    if suffix not in PICTURES:
        return None, None, f"{suffix or 'files without a suffix'}: no decoder is known here"
    try:
        image = import_module("PIL.Image")
    except ImportError:
        return None, None, 'decoding pictures needs Pillow: pip install "loaderscope[storage]"'
    return "PIL", lambda data: _picture(image, data), None


def _picture(image: Any, data: bytes) -> np.ndarray[Any, Any]:
    with image.open(io.BytesIO(data)) as opened:
        return np.asarray(opened if opened.mode in _MODES else opened.convert("RGB"))


def _arrays(data: bytes) -> Any:
    """The array; of a file of several a dict of them."""
    loaded = np.load(io.BytesIO(data), allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    arrays = dict(loaded)
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays
