"""Loaders of which nothing should be said, and one that is slow for good reason."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from .access import Points
from .case import ANY, HABITS, Case, Training
from .distributed import ranks
from .materials import Batched, Decoding, Remote, as_is, matmuls, packed, takes, whole_batches
from .workers import DECODES, Spectra, Streamed


def decoding_beside_much_computing() -> Training:
    return Training(DataLoader(Decoding(240, 60), batch_size=4, shuffle=True), takes(40), size=4)


def rows_beside_matmuls() -> Training:
    return Training(
        DataLoader(Points(), batch_size=100, shuffle=True), matmuls(24), size=100, block=part_of(80)
    )


def part_of(batches: int) -> Any:
    """A part of an epoch."""

    def block(loader: Any) -> Iterator[Any]:
        for number, batch in enumerate(loader):
            yield batch
            if number + 1 == batches:
                return

    return block


def latency_hidden() -> Training:
    loader = DataLoader(Remote(150 * 8, 2.0), batch_size=8, num_workers=8, persistent_workers=True)
    return Training(loader, takes(8), size=8)


def decoding_hidden() -> Training:
    return Training(
        DataLoader(Decoding(350 * 4, 200), batch_size=4, num_workers=2), takes(9), size=4
    )


def batched_already() -> Training:
    loader = DataLoader(Batched(20_000), batch_size=100, shuffle=True, collate_fn=as_is)
    return Training(loader, takes(2), size=100)


def sliced() -> Training:
    return Training(whole_batches(Points(), 100), matmuls(4), size=100)


def persistent_long_epochs() -> Training:
    loader = DataLoader(
        Decoding(160 * 4, 100), batch_size=4, num_workers=2, persistent_workers=True
    )
    return Training(loader, takes(6), size=4)


def forked_each_long_epoch() -> Training:
    """Workers are started anew each epoch, which costs next to nothing of it."""
    return Training(
        DataLoader(Decoding(400 * 4, 60), batch_size=4, num_workers=1), takes(8), size=4
    )


def stream_shared() -> Training:
    packed(12)
    return Training(
        DataLoader(Streamed(12_800, 12), batch_size=32, num_workers=2), takes(8), size=32
    )


def one_sample_much_computing() -> Training:
    return Training(
        DataLoader(Batched(150), batch_size=1, shuffle=True, collate_fn=as_is), takes(12)
    )


def short_last_batch() -> Training:
    return Training(
        DataLoader(Batched(64 * 60 + 5), batch_size=64, shuffle=True, collate_fn=as_is),
        takes(4),
        size=64,
    )


def ranks_in_order() -> Training:
    rank, world = ranks()
    dataset = Batched(32 * 120)
    sampler: DistributedSampler = DistributedSampler(dataset, world, rank)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, collate_fn=as_is)
    return Training(loader, takes(4), size=32, epochs=3, begin_epoch=sampler.set_epoch)


def padded_text() -> Training:
    from .handover import Sentences, padded

    return Training(
        DataLoader(Sentences(), batch_size=32, shuffle=True, collate_fn=padded), takes(12), size=32
    )


def saturated() -> Training:
    """Every core makes features: no setting of the loader makes it faster. The habits would change
    nothing."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    loader = DataLoader(
        Spectra(200 * 12), batch_size=12, num_workers=cores, persistent_workers=True
    )
    return Training(loader, takes(0.2), size=12)


class Files(Dataset):
    """PNG files on this machine's own disk: decoding, not reading, is the work."""

    def __init__(self) -> None:
        from loaderscope.demo import Pictures, make_pictures

        folder = Path(tempfile.mkdtemp(prefix="known-answers-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # not in workers, which fork
        make_pictures(folder)
        self.pictures = Pictures(folder)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.pictures[index]


def files(num_workers: int = 0) -> Training:
    loader = DataLoader(Files(), batch_size=8, shuffle=True, num_workers=num_workers)
    return Training(loader, takes(4), size=8, epochs=3)


EVERYTHING = (ANY,)


def healthy(name: str, about: str, build: Any, **options: Any) -> Case:
    return Case(name, about, build, forbidden=EVERYTHING, measurable=False, **options)


CASES = (
    healthy(
        "much-computing", "decoding is 4 % of a step", decoding_beside_much_computing, quick=True
    ),
    healthy(
        "rows-beside-matmuls",
        "row by row, and computing on the CPU takes the time",
        rows_beside_matmuls,
    ),
    healthy("latency-hidden", "eight workers hide the latency", latency_hidden, quick=True),
    healthy("decoding-hidden", "two workers hide the decoding", decoding_hidden, least_blocks=1),
    healthy("batched-already", "whole batches from memory", batched_already, quick=True),
    healthy("sliced", "whole batches and computing on the CPU", sliced),
    healthy("persistent-long-epochs", "persistent workers", persistent_long_epochs),
    healthy(
        "forked-long-epochs",
        "workers forked anew for long epochs",
        forked_each_long_epoch,
        least_blocks=1,
    ),
    healthy("stream-shared", "a stream divided among workers", stream_shared, least_blocks=1),
    healthy(
        "one-sample-much-computing",
        "batches of one sample, all computing",
        one_sample_much_computing,
    ),
    healthy("short-last-batch", "a short last batch that costs nothing", short_last_batch),
    healthy("ranks-in-order", "two ranks, sharded, set_epoch called", ranks_in_order, world=2),
    healthy("padded-text", "padding by torch, hidden by computing", padded_text),
    healthy("saturated", "all cores make features: slow, and no setting helps", saturated),
    Case(
        "picture-files",
        "PNG files decoded in the training process",
        files,
        DECODES,
        {"num_workers": 2},
        (*HABITS, "batched-getitems", "collate"),
        needs=("PIL",),
    ),
)
