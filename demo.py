"""The demonstration: one small model, trained on real PNG files through a bad and through a good
DataLoader."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .profiler.base.errors import UsageError
from .profiler.base.host import usable_cores

if TYPE_CHECKING:
    import torch

    from .advisors.schema.report_model import Report

CLASSES = 4
MOST_WORKERS = 4
PICTURES, PIXELS, BATCH, EPOCHS = 256, 160, 8, 4
CHANNELS = 8  # of the model: sets how long computing takes beside decoding


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


def make_pictures(folder: Path, number: int = PICTURES, pixels: int = PIXELS) -> None:
    """Write so many PNG files. Raises UsageError where Pillow is missing."""
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "the demo makes pictures with Pillow: pip install 'loaderscope[demo]'"
        ) from error
    for each in range(number):
        _draw(each, pixels).save(folder / f"{each:05d}.png", compress_level=6)


def _draw(number: int, pixels: int) -> Any:
    """Soft shapes, and a little sensor noise, as a photograph has them."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(number)
    coarse = Image.fromarray(random.integers(40, 180, (16, 16, 3), np.uint8))
    picture = np.asarray(coarse.resize((pixels, pixels), Image.Resampling.BICUBIC), np.float32)
    picture = picture + random.standard_normal(picture.shape).astype(np.float32) * 3
    picture[..., number % 3] += 20 * (number % CLASSES)  # something to learn
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def run_demo(tell: Callable[[str], None]) -> tuple[Report, Report]:
    """Train through both loaders; returns the reports of the bad and of the good one. Raises
    UsageError."""
    try:
        import torch
    except ImportError as error:
        raise UsageError(f"the demo trains with PyTorch ({error}): pip install torch") from error
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the cores are for the workers; and both loops get the same
    try:
        with tempfile.TemporaryDirectory(prefix="loaderscope-demo-") as folder:
            tell(f"Making {PICTURES} PNG files…")
            make_pictures(Path(folder))
            dataset = Pictures(Path(folder))
            workers = max(2, min(MOST_WORKERS, usable_cores()))
            good = {"num_workers": workers, "persistent_workers": True, "prefetch_factor": 4}
            return (
                _trained(dataset, "without workers", {}, tell),
                _trained(dataset, f"with {workers} workers that stay", good, tell),
            )
    finally:
        torch.set_num_threads(threads)


def _trained(
    dataset: Any, described: str, settings: dict[str, Any], tell: Callable[[str], None]
) -> Report:
    from torch.utils.data import DataLoader

    from .advisors.assemble.build_report import report
    from .profiler.record.iterate.watch import unwatch, watch

    tell(f"Training {EPOCHS} epochs on {PICTURES} pictures, {described}…")
    loader: Any = DataLoader(dataset, BATCH, shuffle=True, **settings)
    watch(loader, name=f"pictures, {described}")
    _train(loader)
    found = report(loader)
    unwatch(loader)
    return found


def _train(loader: Any) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, CHANNELS, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(CHANNELS, 2 * CHANNELS, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * CHANNELS, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.float() / 255), labels).backward()
            optimizer.step()
