"""What happens to a recording when things go wrong around it."""

import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import segments
from started import all_kept, here, python

# Says how many batches it has been given, as it goes.
TRAIN = """
import os, sys, torch
from torch.utils.data import DataLoader
from loaderscope import watch

workers, length = map(int, sys.argv[1:])
for count, _ in enumerate(watch(DataLoader(range(length), batch_size=4, num_workers=workers)), 1):
    os.write(1, f"{count}\\n".encode())
"""


def recorded(runs: Path) -> np.ndarray:
    """All batch records of the only process of the only run."""
    (folder,) = runs.glob("2*/p*")
    return np.concatenate([read_segment(path)[0] for path in segments(folder, "batches0x0")])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_kill_loses_nothing_recorded(runs_dir: Path, workers: str) -> None:
    command = [sys.executable, "-c", TRAIN, workers, str(10**9)]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, env=here(), **streams) as process:
        # A worker whose parent dies before its watchdog has started never ends (torch's own race).
        process.stdout.readline()
        time.sleep(random.Random(workers).uniform(0.0, 0.8))  # at any moment
        process.kill()
        lines = process.stdout.read().splitlines()
    all_kept(runs_dir)
    records = recorded(runs_dir)
    # The program counts a batch after it was handed over, and so after it was recorded.
    assert len(records) >= int(lines[-1])
    assert (records["seq"] == np.arange(1, len(records) + 1)).all()
    assert (records["t_ns"] > 0).all() and (records["wait_ns"] > 0).all()
    assert (records["samples"] == 4).all()


def test_a_limit_on_file_size_stops_recording_not_training(runs_dir: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))  # records take 4.5 MB

    done = python("-c", TRAIN, "0", "80000", env=here(), preexec_fn=limit, check=True)
    assert done.stdout.split() == [str(count) for count in range(1, 20_001)]
    assert done.stderr.count("loaderscope:") == 1
    assert "recording stopped" in done.stderr and "training goes on" in done.stderr
    assert len(recorded(runs_dir)) > 100
