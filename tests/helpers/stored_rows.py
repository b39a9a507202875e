"""Rows of numbers in a file, and a data set that seeks in it."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

LENGTH, BYTES = 240, 512


class Stored(Dataset):
    """Rows of numbers, read from where they lie; opened at once, or by whoever reads first."""

    def __init__(self, opening: Callable[[], Any], late: bool) -> None:
        self.opening = opening
        self.source = None if late else opening()

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.source is None:
            self.source = self.opening()
        return torch.frombuffer(bytearray(self.read(index)), dtype=torch.int64)

    def __del__(self) -> None:
        if self.source is not None:
            self.source.close()

    def read(self, index: int) -> bytes:
        self.source.seek(index * BYTES)
        return self.source.read(BYTES)


def row(index: int) -> bytes:
    return struct.pack("=q", index) * (BYTES // 8)


def store(path: Path) -> Path:
    path.write_bytes(b"".join(map(row, range(LENGTH))))
    return path
