"""How much longer a training step takes where loading before it has emptied the caches: the
constants COLD_COMPUTE and the like in advisors/whatif/costs.py.

    python benchmarks/cold_steps.py [--rounds N] [--store FOLDER]

A loop without workers trains small networks on one thread. Loading is other work of so many
milliseconds in every other batch, and nothing in those between: both kinds are timed in one loop.
Beside the step, torch's own lines around fetching and collating are timed, by which the model knows
how cold the caches are. Prints a table on standard error and JSON: medians in µs.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from overhead import machine, store, tell
from quiet import add_patience, await_quiet

WARM_UP = 10
LONG_MS = (2, 10, 40)
Work = Callable[[], object]


class _Row(nn.Module):
    """The output of a recurrent network alone."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.GRU(16, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x)[0]


def _convolutions(width: int) -> nn.Module:
    first, second = nn.Conv2d(3, width, 3), nn.Conv2d(width, 2 * width, 3, stride=2)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.AdaptiveAvgPool2d(1))


def _layers(*widths: int) -> nn.Module:
    layers = (part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU()))
    return nn.Sequential(*layers)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "one layer": (lambda: nn.Linear(128, 128, bias=False), (128, 128)),
    "three layers": (lambda: _layers(64, 256, 256, 10), (32, 64)),
    "three wide layers": (lambda: _layers(256, 1024, 1024, 10), (32, 256)),
    "embeddings": (lambda: nn.Linear(64, 128), (16, 100, 64)),
    "recurrent": (_Row, (8, 20, 16)),
    "convolutions": (lambda: _convolutions(8), (8, 3, 32, 32)),
    "large convolutions": (lambda: _convolutions(16), (16, 3, 48, 48)),
}


def objects() -> None:
    held = {n: [n, str(n), n * 2.0] for n in range(400)}
    held.clear()


ARRAY = np.ones(500_000, np.float32)


def arrays() -> None:
    (ARRAY * 2 + 1).sum()


def pictures(raw: bytes) -> Work:
    return lambda: np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))


def jpeg() -> bytes:
    held = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (128, 128, 3), np.uint8)
    Image.fromarray(pixels).save(held, "jpeg")
    return held.getvalue()


class Loading(Dataset[Any]):
    """Every other sample is loaded for so long. How long that and collating took is noted."""

    def __init__(self, work: Work, ms: float, length: int) -> None:
        self.work, self.seconds, self.length = work, ms / 1e3, length
        self.row = torch.zeros(4)
        self.made = 0.0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        began = time.perf_counter()
        while index % 2 and time.perf_counter() < began + self.seconds:
            self.work()
        self.made = time.perf_counter() - began
        return self.row

    def collate(self, rows: list[torch.Tensor]) -> torch.Tensor:
        began = time.perf_counter()
        batch = torch.stack(rows)
        self.made += time.perf_counter() - began
        return batch


def measure(network: nn.Module, x: torch.Tensor, work: Work, ms: float, rounds: int) -> Any:
    """(step, torch's lines) in µs, after no work and after so much."""
    optimizer = torch.optim.SGD(network.parameters(), 1e-3)
    data = Loading(work, ms, 2 * (rounds + WARM_UP))
    loop = iter(DataLoader(data, batch_size=1, collate_fn=data.collate))
    found: tuple[list[tuple[float, float]], ...] = [], []
    for number in range(len(data)):
        asked = time.perf_counter()
        next(loop)
        given = time.perf_counter()
        loss = network(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done = time.perf_counter()
        if number >= 2 * WARM_UP:
            found[number % 2].append((done - given, given - asked - data.made))
    return [[median(each) * 1e6 for each in zip(*side, strict=True)] for side in found]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--store", type=Path, metavar="FOLDER")
    add_patience(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    works = {"objects": objects, "arrays": arrays, "pictures": pictures(jpeg())}
    found = []
    await_quiet(options.patience)
    for name, (make, shape) in NETWORKS.items():
        for kind, work in works.items():
            for ms in LONG_MS:
                warm, cold = measure(make(), torch.rand(shape), work, ms, options.rounds)
                row = {
                    "network": name,
                    "work": kind,
                    "ms": ms,
                    "step_us": round(warm[0]),
                    "step_longer_us": round(cold[0] - warm[0]),
                    "lines_longer_us": round(cold[1] - warm[1]),
                }
                tell(", ".join(f"{key} {value}" for key, value in row.items()))
                found.append(row)
    long = [each for each in found if each["ms"] >= LONG_MS[1]]
    told = {
        "machine": machine(),
        "steps": found,
        "after_10_ms_and_more": {
            key: median(each[key] for each in long) for key in ("step_longer_us", "lines_longer_us")
        },
        "longer_of_lines": round(
            median(each["step_longer_us"] / max(1, each["lines_longer_us"]) for each in long), 1
        ),
        "warm_of_cold": {
            name: round(
                median(
                    each["step_us"] / max(1, each["step_us"] + each["step_longer_us"])
                    for each in long
                    if each["network"] == name
                ),
                2,
            )
            for name in NETWORKS
        },
    }
    text = json.dumps(told, indent=1)
    print(text)
    if options.store is not None:
        store(options.store, text, quick=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
