"""Slow joining of samples, and batches that are dear to hand over."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .case import HABITS, Case, Training
from .materials import takes


class Arrays(Dataset):
    """Samples as NumPy arrays, ready in memory."""

    def __init__(self, length: int, shape: tuple[int, ...]) -> None:
        self.samples = [np.full(shape, i % 7, dtype=np.float32) for i in range(length)]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.samples[index]


def tensor_of_list(samples: list[np.ndarray]) -> torch.Tensor:
    return torch.tensor([list(sample) for sample in samples])


def stacked(samples: list[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.stack(samples))


def list_of_arrays(collate_fn: Any = tensor_of_list) -> Training:
    loader = DataLoader(Arrays(1600, (512,)), batch_size=32, shuffle=True, collate_fn=collate_fn)
    return Training(loader, takes(1), size=32)


class Sentences(Dataset):
    """Token ids of different lengths."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.tokens = [
            torch.from_numpy(rng.integers(1, 30_000, n)) for n in rng.integers(40, 90, 1600)
        ]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tokens[index]


def padded_by_hand(samples: list[torch.Tensor]) -> torch.Tensor:
    longest = max(len(sample) for sample in samples)
    batch = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, sample in enumerate(samples):
        for column in range(len(sample)):
            batch[row, column] = sample[column]
    return batch


def padded(samples: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)


def padding(collate_fn: Any = padded_by_hand) -> Training:
    loader = DataLoader(Sentences(), batch_size=32, shuffle=True, collate_fn=collate_fn)
    return Training(loader, takes(1), size=32)


def padding_in_worker(collate_fn: Any = padded_by_hand) -> Training:
    loader = DataLoader(
        Sentences(), batch_size=32, shuffle=True, num_workers=2, collate_fn=collate_fn
    )
    return Training(loader, takes(1), size=32)


class Waited(Dataset):
    """A whole batch a sample, after some waiting: what remains is what it costs to hand over."""

    def __init__(self, kind: str, milliseconds: float, length: int) -> None:
        self.kind, self.milliseconds, self.length = kind, milliseconds, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.milliseconds / 1e3)
        if self.kind == "many":
            return {f"field{n}": torch.zeros(8) for n in range(100)}
        if self.kind == "packed":
            return {"fields": torch.zeros(100, 8)}
        if self.kind == "arrays":
            return [np.zeros(1_500_000, dtype=np.float32) for _ in range(2)]
        if self.kind == "objects":
            return [
                {"id": n, "text": f"token {n}", "box": (n, n + 1.5, n + 2.5)} for n in range(12_000)
            ]
        if self.kind == "columns":
            return torch.zeros(12_000, 4)
        return [torch.zeros(1_500_000) for _ in range(2)]


def passed(batch: Any) -> Any:
    return batch


def handed(kind: str, milliseconds: float, length: int, num_workers: int = 4) -> Training:
    loader = DataLoader(
        Waited(kind, milliseconds, length),
        batch_size=None,
        num_workers=num_workers,
        collate_fn=passed,
    )
    return Training(loader)


def many_tensors(kind: str = "many") -> Training:
    return handed(kind, 30, 60)


def large_arrays(kind: str = "arrays") -> Training:
    return handed(kind, 30, 120)


def many_objects(kind: str = "objects") -> Training:
    return handed(kind, 40, 80)


class Pictures(Dataset):
    """uint8 pictures in memory, shipped as float32 between 0 and 1."""

    def __init__(self, scaled: bool) -> None:
        self.scaled = scaled
        self.pictures = torch.randint(0, 256, (48, 3, 224, 224), dtype=torch.uint8)

    def __len__(self) -> int:
        return 64 * 40

    def __getitem__(self, index: int) -> torch.Tensor:
        picture = self.pictures[index % 48]
        return picture.float() / 255 if self.scaled else picture


def floats_shipped(scaled: bool = True) -> Training:
    return Training(DataLoader(Pictures(scaled), batch_size=64, num_workers=2), takes(2), size=64)


JOIN = (*HABITS, "batched-getitems", "worker-transfer", "sampler")
SEND = (*HABITS, "batched-getitems", "sampler")
CASES = (
    Case(
        "list-of-arrays",
        "torch.tensor of a list of lists",
        list_of_arrays,
        ("collate",),
        {"collate_fn": stacked},
        JOIN,
        quick=True,
    ),
    Case(
        "padding-by-hand",
        "padding element by element",
        padding,
        ("collate",),
        {"collate_fn": padded},
        JOIN,
    ),
    Case(
        "padding-in-workers",
        "the same in two workers",
        padding_in_worker,
        ("collate",),
        {"collate_fn": padded},
        JOIN,
    ),
    Case(
        "many-tensors",
        "100 tiny tensors a batch from workers",
        many_tensors,
        ("worker-transfer",),
        {"kind": "packed"},
        SEND,
    ),
    Case(
        "large-arrays",
        "12 MB of NumPy arrays pickled a batch",
        large_arrays,
        ("worker-transfer",),
        {"kind": "tensors"},
        SEND,
        quick=True,
    ),
    Case(
        "many-objects",
        "12,000 dicts pickled a batch",
        many_objects,
        ("worker-transfer",),
        {"kind": "columns"},
        SEND,
    ),
    Case(
        "floats-shipped",
        "pictures made float32 in the workers",
        floats_shipped,
        ("h2d-dtype", "worker-transfer"),
        {"scaled": False},
        SEND,
    ),
)
