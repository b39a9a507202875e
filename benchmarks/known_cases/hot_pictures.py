"""Pictures and sound: decoding, resizing, resampling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_case import Hot, Spot
from .hot_materials import DISTINCT, MANY_SAMPLES, SAMPLES, Paths, Stored, files, looped, picture


def write_picture(height: int, width: int, **options: Any) -> Any:
    def write(path: Path, number: int) -> None:
        from PIL import Image

        Image.fromarray(picture(number, height, width)).save(path, **options)

    return write


class Pictures(Paths):
    """Decoded as they are."""

    def __getitem__(self, index: int) -> torch.Tensor:
        from PIL import Image

        with Image.open(self.paths[index]) as file:
            decoded = file.convert("RGB")
        return torch.from_numpy(np.array(decoded))


class Thumbnails(Paths):
    """Decoded, then made small: bilinear, to 224 × 224."""

    draft = False

    def __getitem__(self, index: int) -> torch.Tensor:
        from PIL import Image

        with Image.open(self.paths[index]) as file:
            if self.draft:
                file.draft("RGB", (224, 224))
            decoded = file.convert("RGB")
        small = decoded.resize((224, 224), Image.Resampling.BILINEAR, reducing_gap=1.0)
        return torch.from_numpy(np.array(small))


class Drafts(Thumbnails):
    """The decoder itself leaves out what is not needed: JPEG scales by powers of two while
    decoding."""

    draft = True


class Held(Dataset):
    """Large pictures in memory, resized at every access."""

    SAMPLES = 160

    def __init__(self) -> None:
        from PIL import Image

        self.pictures = [Image.fromarray(picture(number, 800, 800)) for number in range(DISTINCT)]

    def __len__(self) -> int:
        return self.SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        from PIL import Image

        small = self.pictures[index % DISTINCT].resize((224, 224), Image.Resampling.LANCZOS)
        return torch.from_numpy(np.array(small))


class Recordings(Dataset):
    """A second of sound, resampled from 44.1 to 16 kHz at every access."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.waves = rng.normal(size=(DISTINCT, 44_100)).astype(np.float32)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        from scipy import signal

        wave = signal.resample_poly(self.waves[index % DISTINCT], 160, 441)
        return torch.from_numpy(np.asarray(wave, dtype=np.float32))


def png(folder: str, better: bool = False, workers: int = 0) -> Training:
    samples = MANY_SAMPLES if workers else SAMPLES
    found = Pictures(files(folder, "pictures", ".png", write_picture(256, 256)), samples)
    return looped(
        Stored(folder, found) if better else found,
        3 if workers else 5,
        16 if workers else 8,
        workers,
    )


def png_two_workers(folder: str, better: bool = False) -> Training:
    return png(folder, better, workers=2)


def jpeg(folder: str, better: bool = False) -> Training:
    paths = files(folder, "pictures", ".jpg", write_picture(960, 1280, quality=90))
    return looped((Drafts if better else Thumbnails)(paths, 96), 5, size=4)


def jpeg_two_workers(folder: str, better: bool = False) -> Training:
    """The better alternative: files that were made small once."""
    paths = files(folder, "pictures", ".jpg", write_picture(960, 1280, quality=90))
    found = Thumbnails(paths, 240)

    def write(path: Path, number: int) -> None:
        from PIL import Image

        Image.fromarray(found[number].numpy()).save(path, quality=95, subsampling=0)

    if better:
        return looped(Pictures(files(folder, "small", ".jpg", write), 240), 5, size=4, workers=2)
    return looped(found, 5, size=4, workers=2)


def resize(folder: str, better: bool = False) -> Training:
    found = Held()
    return looped(Stored(folder, found) if better else found, 6, size=4)


def resample(folder: str, better: bool = False) -> Training:
    found = Recordings()
    return looped(Stored(folder, found) if better else found, 3)


# Without frames of compiled code, a decoder shows as the method that calls it.
DECODER = Spot(("PIL",), ("load", "decode", "load_end", "load_read", "load_prepare"))
NEEDS = ("PIL",)

CASES = (
    Hot(
        "png",
        "PNG files decoded by PIL",
        png,
        spot=DECODER,
        words=("PNG",),
        needs=NEEDS,
        quick=True,
    ),
    Hot(
        "png-two-workers",
        "the same in two workers",
        png_two_workers,
        spot=DECODER,
        words=("PNG",),
        needs=NEEDS,
    ),
    Hot(
        "jpeg",
        "JPEG files of 1.2 megapixels decoded whole for 224 × 224 pixels",
        jpeg,
        spot=DECODER,
        words=("JPEG",),
        tolerance=8.0,
        needs=NEEDS,
    ),
    Hot(
        "jpeg-two-workers",
        "the same in two workers, made small once",
        jpeg_two_workers,
        spot=DECODER,
        words=("JPEG",),
        tolerance=4.0,
        needs=NEEDS,
    ),
    Hot(
        "resize",
        "large pictures in memory, made small at every access",
        resize,
        spot=Spot(("PIL",), ("resize",)),
        words=("resiz", "resample"),
        needs=NEEDS,
    ),
    Hot(
        "resample",
        "sound resampled at every access",
        resample,
        spot=Spot(("scipy",)),
        words=("resampl",),
        needs=("scipy",),
    ),
)
