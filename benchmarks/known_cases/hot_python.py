"""Python code that is slow by itself, and a lock."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_case import Hot, Spot
from .hot_materials import DISTINCT, MANY_SAMPLES, SAMPLES, looped


class Templates(Dataset):
    """A nested template, copied for every sample though only one value changes."""

    def __init__(self, better: bool) -> None:
        self.template = {
            "boxes": [[n, n + 1, n + 2, n + 3] for n in range(200)],
            "label": 0,
            "name": "picture",
        }
        self.better = better

    def __len__(self) -> int:
        return 2_000

    def __getitem__(self, index: int) -> torch.Tensor:
        entry = {**self.template} if self.better else copy.deepcopy(self.template)
        entry["label"] = index
        return torch.tensor(entry["boxes"][0] + [entry["label"]])


class Elements(Dataset):
    """A tensor read element by element."""

    def __init__(self, better: bool) -> None:
        self.signals = torch.rand(DISTINCT, 600, generator=torch.Generator().manual_seed(0))
        self.better = better

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        signal = self.signals[index % DISTINCT]
        if self.better:
            return signal.clamp(0.25, 0.75)
        return torch.tensor([min(max(signal[n].item(), 0.25), 0.75) for n in range(len(signal))])


class Noisy(Dataset):
    """A random generator made for every sample."""

    def __init__(self, better: bool) -> None:
        self.rng = np.random.default_rng(0)
        self.better = better

    def __len__(self) -> int:
        return 32_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.better:
            return torch.from_numpy(self.rng.random(8))
        rng = np.random.default_rng(index)
        return torch.from_numpy(rng.random(8))


class Shared(Dataset):
    """Reads a table under a lock that a thread beside it, which updates the table, holds most of
    the time."""

    def __init__(self, better: bool) -> None:
        self.table = np.random.default_rng(0).random(12_000)
        self.lock = threading.Lock()
        self.better = better
        self.ended = threading.Event()
        threading.Thread(target=self._update, daemon=True).start()

    def _update(self) -> None:
        while not self.ended.is_set():
            with self.lock:
                time.sleep(0.003)  # as a thread does that talks to a server
            time.sleep(0.0001)

    def __del__(self) -> None:
        self.ended.set()

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.better:
            rows = self.table[index : index + 10_000].copy()
        else:
            with self.lock:
                rows = self.table[index : index + 10_000].copy()
        return torch.from_numpy(np.sort(rows)[:64])


def smoothed(signal: list[float], width: int) -> list[float]:
    """A moving mean, as one writes it first."""
    means = []
    for at in range(len(signal) - width + 1):
        total = 0.0
        for value in signal[at : at + width]:
            total += value
        means.append(total / width)
    return means


class Signals(Dataset):
    """Signals that are smoothed by a function of one's own."""

    def __init__(self, better: bool, samples: int) -> None:
        self.signals = np.random.default_rng(0).normal(size=(DISTINCT, 2_000))
        self.better, self.samples = better, samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        signal = self.signals[index % DISTINCT]
        if self.better:
            return torch.from_numpy(np.convolve(signal, np.full(16, 1 / 16), "valid"))
        return torch.tensor(smoothed(signal.tolist(), 16), dtype=torch.float64)


def planted(dataset: Any, step_ms: float, size: int = 8) -> Any:
    def build(folder: str, better: bool = False) -> Training:
        return looped(dataset(better), step_ms, size)

    return build


def own_function(folder: str, better: bool = False) -> Training:
    return looped(Signals(better, SAMPLES), 3)


def own_function_two_workers(folder: str, better: bool = False) -> Training:
    return looped(Signals(better, MANY_SAMPLES), 2, 16, 2)


OWN = Spot(functions=("smoothed",), line="total")

CASES = (
    Hot(
        "deepcopy",
        "a template copied deeply for every sample",
        planted(Templates, 3, 32),
        spot=Spot(
            ("copy", "python"), ("deepcopy", "_deepcopy_list", "_deepcopy_dict", "_keep_alive")
        ),
        words=("deepcopy",),
    ),
    Hot(
        "tensor-elements",
        "a tensor read element by element",
        planted(Elements, 3),
        spot=Spot(line="signal[n].item()"),
        words=("element", "tensor"),
    ),
    Hot(
        "generator-each",
        "a random generator made for every sample",
        planted(Noisy, 1, 256),
        spot=Spot(("numpy",), ("default_rng", "__init__"), line="default_rng(index)"),
        words=("generator", "default_rng"),
        tolerance=None,
    ),
    Hot(
        "lock",
        "a lock that a thread beside it holds most of the time",
        planted(Shared, 4),
        spot=Spot(("threading", "python"), ("acquire", "__enter__"), line="with self.lock"),
        words=("lock",),
    ),
    Hot(
        "own-function",
        "a slow function of the user's own",
        own_function,
        spot=OWN,
        words=("smoothed", "for value in signal", "total += value"),
        known=False,
        tolerance=1e-12,
        quick=True,
    ),
    Hot(
        "own-function-two-workers",
        "the same in two workers",
        own_function_two_workers,
        spot=OWN,
        words=("smoothed", "for value in signal", "total += value"),
        known=False,
        tolerance=1e-12,
    ),
)
