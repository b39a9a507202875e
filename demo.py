"""The demonstration: one small model, trained on real PNG files through a bad and through a good
DataLoader."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .profiler.base.errors import UsageError
from .profiler.base.host import usable_cores

if TYPE_CHECKING:
    import torch

    from .advisors.schema.report_model import Report

CACHE_VARIABLE = "LOADERSCOPE_CACHE"
CLASSES = 4
MOST_WORKERS = 4
_COMPLETE = "complete"


@dataclass(frozen=True)
class Size:
    """How much work a demonstration is."""

    pictures: int
    pixels: int  # width and height
    batch: int
    epochs: int
    channels: int  # of the model: sets how long computing takes beside decoding


FULL = Size(pictures=768, pixels=256, batch=16, epochs=3, channels=8)
QUICK = Size(pictures=256, pixels=160, batch=8, epochs=4, channels=8)


class Pictures:
    """A map-style data set over the PNG files of a folder: (uint8 tensor 3 x H x W, class)."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(str(path) for path in folder.glob("*.png"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        import numpy as np
        import torch
        from PIL import Image

        with Image.open(self.files[index]) as picture:
            pixels = np.array(picture.convert("RGB"))
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous(), index % CLASSES


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where pictures are kept: `LOADERSCOPE_CACHE`, or the platform's user cache folder."""
    chosen = environ.get(CACHE_VARIABLE, "")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("loaderscope", appauthor=False)


def _all(numbers: Iterable[int]) -> Iterable[int]:
    return numbers


def pictures(
    cache: Path,
    size: Size,
    tell: Callable[[str], None] = lambda line: None,
    track: Callable[[Iterable[int]], Iterable[int]] = _all,
) -> Path:
    """The folder of pictures of this size, made if it is not there in full; `track` may show how
    far that is. Raises UsageError."""
    folder = cache / f"pictures-{size.pictures}x{size.pixels}"
    if (folder / _COMPLETE).exists() and sum(1 for _ in folder.glob("*.png")) == size.pictures:
        return folder
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "the demo makes pictures with Pillow: pip install 'loaderscope[demo]'"
        ) from error
    tell(f"Making {size.pictures} PNG files in {folder} (once)…")
    made = None
    try:
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".pictures-", dir=cache))
        for number in track(range(size.pictures)):
            _draw(number, size.pixels).save(made / f"{number:05d}.png", compress_level=6)
        (made / _COMPLETE).touch()
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        made.replace(folder)
    except OSError as error:
        if (folder / _COMPLETE).exists():  # another demo was faster
            return folder
        raise UsageError(
            f"pictures cannot be kept in {cache} ({error.strerror}): set {CACHE_VARIABLE} to a "
            "writable folder"
        ) from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
    return folder


def _draw(number: int, pixels: int) -> Any:
    """A picture with the spectrum of a photograph: soft shapes at every scale, and a little sensor
    noise."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(number)
    picture = np.zeros((pixels, pixels, 3), dtype=np.float32)
    for octave in range(2, 8):
        cells = min(1 << octave, pixels)
        for channel in range(3):
            coarse = Image.fromarray(random.standard_normal((cells, cells)).astype(np.float32))
            smooth = np.asarray(coarse.resize((pixels, pixels), Image.Resampling.BICUBIC))
            picture[..., channel] += smooth * 60 / (octave - 1)
    picture[..., number % 3] += 20 * (number % CLASSES)  # something to learn
    picture += random.standard_normal(picture.shape).astype(np.float32) * 3 + 110
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def run_demo(
    quick: bool,
    tell: Callable[[str], None],
    cache: Path | None = None,
    track: Callable[[Iterable[int]], Iterable[int]] = _all,
) -> tuple[Report, Report]:
    """Train through both loaders; returns the reports of the bad and of the good one. Raises
    UsageError."""
    try:
        import torch
        from torch.utils.data import DataLoader
    except ImportError as error:
        raise UsageError(f"the demo trains with PyTorch ({error}): pip install torch") from error

    from .advisors.assemble.build_report import report
    from .profiler.record.iterate.watch import unwatch, watch

    size = QUICK if quick else FULL
    dataset: Any = Pictures(pictures(cache or cache_directory(), size, tell, track))
    workers = max(2, min(MOST_WORKERS, usable_cores()))
    loaders = (
        ("without workers", DataLoader(dataset, size.batch, shuffle=True)),
        (
            f"with {workers} workers that stay",
            DataLoader(
                dataset,
                size.batch,
                shuffle=True,
                num_workers=workers,
                persistent_workers=True,
                prefetch_factor=4,
            ),
        ),
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the cores are for the workers; and both loops get the same
    reports = []
    try:
        for described, loader in loaders:
            tell(f"Training {size.epochs} epochs on {len(dataset)} pictures, {described}…")
            watch(loader, name=f"pictures, {described}")
            _train(loader, size)
            reports.append(report(loader))
            unwatch(loader)
    finally:
        torch.set_num_threads(threads)
    return reports[0], reports[1]


def _train(loader: Any, size: Size) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, size.channels, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(size.channels, 2 * size.channels, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * size.channels, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(size.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.float() / 255), labels).backward()
            optimizer.step()
