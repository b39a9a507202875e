"""Too few workers, too many, and batches that take very different times."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .case import HABITS, RESTARTS, Case, Training
from .materials import Batched, Decoding, Remote, packed, takes

LOADING = ("batched-getitems", "collate", "worker-transfer", "sampler")


def decoding(num_workers: int = 0) -> Training:
    dataset = Decoding(100 * 8, 250)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=num_workers)
    return Training(loader, takes(6), size=8)


def decoding_alone(num_workers: int = 1) -> Training:
    """Nothing to overlap with: one worker computes, one core idles."""
    dataset = Decoding(100 * 8, 350)
    return Training(
        DataLoader(dataset, batch_size=8, shuffle=True, num_workers=num_workers), takes(1), size=8
    )


class Spectra(Dataset):
    """Features made with NumPy of a random part of a signal: computing, sample by sample, that
    cannot be done in advance."""

    def __init__(self, length: int = 1200) -> None:
        self.length = length
        self.signal = np.random.default_rng(0).normal(size=1 << 16).astype(np.float32)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        start = random.randrange(1200)
        part = self.signal[start : start + 16384]
        windows = np.lib.stride_tricks.sliding_window_view(part, 512)[::128] * np.hanning(512)
        power = np.abs(np.fft.rfft(windows)) ** 2
        return torch.from_numpy(np.log1p(power[:, :64]).astype(np.float32)), index % 5


def spectra(num_workers: int = 0) -> Training:
    return Training(
        DataLoader(Spectra(), batch_size=12, shuffle=True, num_workers=num_workers),
        takes(3),
        size=12,
    )


def remote(num_workers: int = 0) -> Training:
    loader = DataLoader(Remote(90 * 8, 2.0), batch_size=8, shuffle=True, num_workers=num_workers)
    return Training(loader, takes(2), size=8)


def remote_two_workers(num_workers: int = 2) -> Training:
    """As many workers as cores; the cores do nothing."""
    loader = DataLoader(Remote(150 * 8, 3.0), batch_size=8, shuffle=True, num_workers=num_workers)
    return Training(loader, takes(2), size=8)


def batched_with_workers(num_workers: int = 4) -> Training:
    loader = DataLoader(
        Batched(60_000), batch_size=100, shuffle=True, num_workers=num_workers, collate_fn=passed
    )
    return Training(loader, size=100)


def passed(batch: Any) -> Any:
    return batch


class Counted(Dataset):
    """A few numbers made up from the index: next to no work."""

    def __len__(self) -> int:
        return 32_000

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index * 7919 % 10_007, index % 10


def counted_with_workers(num_workers: int = 2) -> Training:
    return Training(DataLoader(Counted(), batch_size=32, num_workers=num_workers), size=32)


class Streamed(torch.utils.data.IterableDataset):
    """A stream divided among the workers; each sample is decoded."""

    def __init__(self, length: int = 640, kilobytes: int = 250) -> None:
        self.length, self.kilobytes = length, kilobytes

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        from .materials import decoded

        for _ in range(first, self.length, step):
            yield decoded(self.kilobytes)[:1000]


def streamed(num_workers: int = 0) -> Training:
    packed(250)
    return Training(DataLoader(Streamed(), batch_size=8, num_workers=num_workers), takes(6), size=8)


def bursts(**arguments: Any) -> Training:
    """Every 120th sample is slow, and the queue too shallow for it; on average there is plenty of
    time."""
    dataset = Remote(180 * 4, 0.4, slow_every=120, slow_ms=80)
    return Training(DataLoader(dataset, batch_size=4, num_workers=2, **arguments), takes(5), size=4)


def heavy_tail(**arguments: Any) -> Training:
    """One batch in forty takes 0.4 s: three of four workers are ready, and wait for their turn."""
    dataset = Remote(160 * 4, 1.2, slow_every=160, slow_ms=400)
    return Training(DataLoader(dataset, batch_size=4, num_workers=4, **arguments), takes(3), size=4)


def crowded(num_workers: int = 8) -> Training:
    """Eight computing workers for what two cores can do."""
    # Long epochs: starting eight workers costs so much that it would be a second cause.
    loader = DataLoader(Spectra(300 * 12), batch_size=12, shuffle=True, num_workers=num_workers)
    return Training(loader, takes(1), size=12)


MORE = ("num-workers",)
# Where samples are decompressed the same way each time, storing them decoded is as right, once
# stacks have shown it.
DECODES = ("num-workers", "hot-function")
CASES = (
    Case(
        "decoding",
        "decoding in the training process, cores idle",
        decoding,
        DECODES,
        {"num_workers": 2},
        (*HABITS, *RESTARTS, *LOADING),
        quick=True,
    ),
    Case(
        "decoding-one-worker",
        "one worker decodes, another core idles",
        decoding_alone,
        DECODES,
        {"num_workers": 2},
        (*HABITS, *LOADING),
    ),
    Case(
        "spectra",
        "NumPy features in the training process",
        spectra,
        MORE,
        {"num_workers": 2},
        (*HABITS, *RESTARTS, *LOADING),
    ),
    Case(
        "remote",
        "latency in the training process",
        remote,
        MORE,
        {"num_workers": 8},
        (*HABITS, *RESTARTS, *LOADING),
        quick=True,
    ),
    Case(
        "remote-two-workers",
        "latency: more workers than cores are right",
        remote_two_workers,
        MORE,
        {"num_workers": 12},
        (*HABITS, *LOADING),
        quick=True,
    ),
    Case(
        "streamed",
        "an iterable set decodes in the training process",
        streamed,
        DECODES,
        {"num_workers": 2},
        (*HABITS, *RESTARTS, *LOADING, "iterable-sharding"),
    ),
    Case(
        "batched-with-workers",
        "batches cheaper to make than to hand over",
        batched_with_workers,
        MORE,
        {"num_workers": 0},
        HABITS,
        quick=True,
    ),
    Case(
        "counted-with-workers",
        "samples cheaper to make than to hand over",
        counted_with_workers,
        MORE,
        {"num_workers": 0},
        HABITS,
    ),
    Case(
        "bursts",
        "enough capacity, a queue too shallow for slow batches",
        bursts,
        ("prefetch-factor", "in-order"),
        {"prefetch_factor": 8},
        ("storage-format", *LOADING),
    ),
    Case(
        "heavy-tail",
        "ready batches wait behind a slow one",
        heavy_tail,
        ("in-order",),
        {"in_order": False},
        ("storage-format", *LOADING),
    ),
    Case(
        "crowded",
        "eight busy workers on few cores",
        crowded,
        ("cpu-budget", "num-workers"),
        {"num_workers": 2},
        (*HABITS, *LOADING),
        may_be_silent=True,
        least_blocks=1,
    ),
)
