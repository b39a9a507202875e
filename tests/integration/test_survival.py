"""What happens to a recording when things go wrong around it."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import segments
from started import here, python, until

PROGRAMS = Path(__file__).with_name("programs.py")


def recorded(runs: Path) -> np.ndarray:
    """All batch records of the only process of the only run."""
    (folder,) = runs.glob("2*/p*")
    return np.concatenate([read_segment(path)[0] for path in segments(folder, "batches0x0")])


def await_sampler(runs: Path) -> None:
    """Until the sampler of the only run has ended too."""
    told = "2*/system-*/sampler.json"
    until(lambda: any("ended_clock_ns" in p.read_text() for p in runs.glob(told)), "its end")


@pytest.mark.parametrize("program", ["endless", "endless_workers"])
@pytest.mark.parametrize(
    "attempt", [0, *(pytest.param(more, marks=pytest.mark.slow) for more in (1, 2, 3, 4))]
)
def test_kill_loses_nothing_recorded(runs_dir: Path, program: str, attempt: int) -> None:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS), program],
        env=here(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    # A worker whose parent dies before its watchdog has started never ends (torch's own race).
    process.stdout.readline()
    time.sleep(random.Random(f"{program}{attempt}").uniform(0.0, 0.8))  # at any moment
    process.kill()
    lines = [line for line in process.stdout.read().splitlines() if line.isdigit()]
    process.wait()
    process.stdout.close()
    process.stderr.close()
    await_sampler(runs_dir)  # which keeps the memory that the program recorded into
    records = recorded(runs_dir)
    # The program counts a batch after it was handed over, and so after it was recorded.
    assert len(records) >= int(lines[-1]) if lines else True
    assert (records["seq"] == np.arange(1, len(records) + 1)).all()
    assert (records["t_ns"] > 0).all() and (records["wait_ns"] > 0).all()
    assert (records["samples"] == 4).all()


def test_a_limit_on_file_size_stops_recording_not_training(runs_dir: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    done = python(PROGRAMS, "fills_the_disk", env=here(), preexec_fn=limit, check=True)
    assert done.stdout == f"{sum(range(20_000))}\n"
    assert done.stderr.count("loaderscope:") == 1
    assert "recording stopped" in done.stderr and "training goes on" in done.stderr
    assert len(recorded(runs_dir)) > 100
