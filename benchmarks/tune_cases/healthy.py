"""Loops that no setting makes faster: theirs must stay. Every second one is held out."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, TensorDataset

from known_cases.materials import matmuls, takes

from .loop import LENGTH, Loop
from .materials import ROWS, made, records, waited, worked


class Records(Dataset):
    """Small arrays in LMDB."""

    reading: Any = None  # of all of them: LMDB opens a store once in a process

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        import lmdb

        if Records.reading is None:
            Records.reading = lmdb.open(str(records() / "store"), readonly=True, lock=False).begin()
        return torch.from_numpy(
            np.load(io.BytesIO(Records.reading.get(f"{index % 2000}".encode())))
        ), index


def rows() -> TensorDataset:
    return TensorDataset(ROWS.repeat(8, 1), torch.arange(8 * len(ROWS)))


def healthy(*args: Any, **more: Any) -> Loop:
    return Loop(*args, **more, healthy=True)


LOOPS = (
    healthy(
        "hidden",
        "two workers hide the NumPy work",
        made(lambda i: (worked(i, 6),)),
        takes(14),
        8,
        {"num_workers": 2},
        quick=True,
    ),
    healthy(
        "records",
        "LMDB beside much computing",
        Records,
        takes(15),
        16,
        needs=("lmdb",),
        held_out=True,
    ),
    healthy("matmuls", "rows in memory beside matmuls", rows, matmuls(8), 64),
    healthy(
        "latency",
        "six workers hide the latency",
        made(waited(2.0)),
        takes(6),
        8,
        {"num_workers": 6},
        held_out=True,
    ),
    healthy(
        "ahead",
        "uneven work that a deep queue hides",
        made(lambda i: (worked(i, 2 + 20 * (i % 8 == 0)),)),
        takes(12),
        8,
        {"num_workers": 2, "prefetch_factor": 4},
    ),
    healthy(
        "seldom",
        "one sample a step, all computing",
        made(lambda i: (worked(i, 4),)),
        takes(9),
        1,
        held_out=True,
    ),
)
