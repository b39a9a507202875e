"""What is paid once a step, once an epoch or once a start, and should not be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from .case import HABITS, Case, Training, new_iterator_each_step
from .materials import Batched, Decoding, Remote, as_is, decoded, takes


def short_epochs(**arguments: Any) -> Training:
    loader = DataLoader(Remote(12 * 4, 1.0), batch_size=4, num_workers=4, shuffle=True, **arguments)
    return Training(loader, takes(1), size=4, epochs=20)


def short_epochs_spawned(**arguments: Any) -> Training:
    loader = DataLoader(
        Remote(40 * 4, 1.0),
        batch_size=4,
        num_workers=1,
        multiprocessing_context="spawn",
        **arguments,
    )
    return Training(loader, takes(2), size=4, epochs=3)


class Listed(Dataset):
    """Names and boxes of a large data set as Python objects: all of it is pickled for every spawned
    worker."""

    def __init__(self, entries: int) -> None:
        self.entries = [
            {"name": f"picture{n:08}.jpg", "box": [n, n + 1, n + 2, n + 3]} for n in range(entries)
        ]

    def __len__(self) -> int:
        return 50 * 8

    def __getitem__(self, index: int) -> torch.Tensor:
        entry = self.entries[index]
        return decoded(100)[:100] + len(entry["name"])


def spawned_with_list(entries: int = 400_000, **arguments: Any) -> Training:
    loader = DataLoader(
        Listed(entries), batch_size=8, num_workers=2, multiprocessing_context="spawn", **arguments
    )
    return Training(loader, takes(4), size=8)


def iterator_each_step(again: bool = True) -> Training:
    loader = DataLoader(Decoding(200 * 4, 250), batch_size=4, shuffle=True, num_workers=2)
    return Training(
        loader, takes(3), size=4, block=new_iterator_each_step(25) if again else first_batches(25)
    )


def first_batches(steps: int) -> Any:
    """What one iterator gives, as often as it takes."""

    def block(loader: Any) -> Iterator[Any]:
        iterator = iter(loader)
        for _ in range(steps):
            yield next(iterator)

    return block


def iterator_each_step_alone(again: bool = True) -> Training:
    """Without workers the mistake is a permutation of the whole set each step."""
    loader = DataLoader(Batched(300_000), batch_size=64, shuffle=True, collate_fn=as_is)
    return Training(
        loader, takes(1), size=64, block=new_iterator_each_step(40) if again else first_batches(40)
    )


class Weighted(Sampler):
    """Draws every index by itself from all weights."""

    def __init__(self, length: int, at_once: bool = False) -> None:
        self.length, self.at_once = length, at_once
        weights = np.arange(1, length + 1, dtype=np.float64)
        self.probabilities = weights / weights.sum()

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        if self.at_once:
            yield from np.random.choice(
                self.length, size=self.length, p=self.probabilities
            ).tolist()
        else:
            for _ in range(self.length):
                yield int(np.random.choice(self.length, p=self.probabilities))


def drawn_one_by_one(at_once: bool = False) -> Training:
    loader = DataLoader(
        Batched(6400), batch_size=64, sampler=Weighted(6400, at_once), collate_fn=as_is
    )
    return Training(loader, takes(1), size=64)


def drawn_for_workers(at_once: bool = False) -> Training:
    """Workers wait for indices that the training process draws."""
    loader = DataLoader(
        Remote(6400, 0.02), batch_size=64, sampler=Weighted(6400, at_once), num_workers=2
    )
    return Training(loader, takes(1), size=64)


class Made(Dataset):
    """A little tensor made up from its index."""

    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((16,), float(index % 97))


def one_by_one(batch_size: int = 1) -> Training:
    return Training(DataLoader(Made(), batch_size=batch_size, shuffle=True), size=batch_size)


def compiled_for(size: int) -> Any:
    """A step that is slow for any other batch size than its own, as if it were compiled anew."""

    def step(batch: Any) -> None:
        time.sleep(0.002 if len(batch[0]) == size else 0.12)

    return step


def odd_last_batch(drop_last: bool = False) -> Training:
    loader = DataLoader(
        Batched(64 * 40 + 7), batch_size=64, shuffle=True, drop_last=drop_last, collate_fn=as_is
    )
    return Training(loader, compiled_for(64), size=64)


KEEP = {"persistent_workers": True}
LOADING = (
    "batched-getitems",
    "collate",
    "worker-transfer",
    "storage-format",
    "page-cache",
    "prefetch-factor",
)
CASES = (
    Case(
        "short-epochs",
        "workers started anew for every dozen batches",
        short_epochs,
        ("persistent-workers",),
        KEEP,
        LOADING,
        quick=True,
        record_s=1.0,
        least_blocks=1,
    ),
    Case(
        "short-epochs-spawned",
        "the same with spawned workers",
        short_epochs_spawned,
        ("persistent-workers", "worker-startup", "num-workers"),
        KEEP,
        LOADING,
        record_s=1.0,
        least_blocks=1,
    ),
    Case(
        "spawned-with-list",
        "a list of 400,000 objects pickled for each worker",
        spawned_with_list,
        ("worker-startup", "persistent-workers", "num-workers"),
        {"entries": 400},
        LOADING,
        record_s=1.0,
        least_blocks=1,
    ),
    Case(
        "iterator-each-step",
        "next(iter(loader)) with workers",
        iterator_each_step,
        ("loader-rebuilt",),
        {"again": False},
        LOADING,
        quick=True,
    ),
    Case(
        "iterator-each-step-alone",
        "next(iter(loader)) draws a permutation each step",
        iterator_each_step_alone,
        ("loader-rebuilt",),
        {"again": False},
        LOADING,
    ),
    Case(
        "drawn-one-by-one",
        "a sampler slower than the data set",
        drawn_one_by_one,
        ("sampler",),
        {"at_once": True},
        (*HABITS, *LOADING),
        quick=True,
    ),
    Case(
        "drawn-for-workers",
        "the same with workers that wait for indices",
        drawn_for_workers,
        ("sampler",),
        {"at_once": True},
        (*HABITS, *LOADING),
    ),
    Case(
        "batches-of-one",
        "a fixed cost a batch, and one sample in it",
        one_by_one,
        ("batch-size",),
        {"batch_size": 64},
        HABITS,
    ),
    Case(
        "odd-last-batch",
        "a short last batch costs a compilation",
        odd_last_batch,
        ("drop-last",),
        {"drop_last": True},
        (*HABITS, *LOADING, "num-workers"),
    ),
)
