"""A short training on files, with workers and without: `python small_training.py FOLDER`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

import loaderscope
from fetch_probe_data import Compose, Files, Halve, make_pngs, read_png


def train(folder: Path, seconds: float) -> None:
    dataset = Files(make_pngs(folder), read_png, Compose([torch.neg, Halve()]), pause_s=0)
    for workers in (2, 0):
        loader = loaderscope.watch(
            DataLoader(dataset, batch_size=8, num_workers=workers, shuffle=True)
        )
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in loader:
                time.sleep(0.01)


if __name__ == "__main__":
    train(Path(sys.argv[1]), 3.0)
