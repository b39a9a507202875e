"""A short training on files, with workers and without: `python small_training.py FOLDER`."""

import sys
import time
from pathlib import Path

from torch.utils.data import DataLoader

import loaderscope
from fetch_probe_data import Files, make_pngs

if __name__ == "__main__":
    dataset = Files(make_pngs(Path(sys.argv[1])), pause_s=0)
    for workers in (2, 0):
        loader = loaderscope.watch(
            DataLoader(dataset, batch_size=8, num_workers=workers, shuffle=True)
        )
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for _ in loader:
                time.sleep(0.01)
