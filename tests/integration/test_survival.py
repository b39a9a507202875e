"""What happens to a recording when things go wrong around it."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from loaderscope.profiler.store.lanes.lane_reader import read_segment, segments
from started import here, until

HERE = Path(__file__).parent


def begun(*args: object, limit: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    """A program of this folder; its runs go to the `runs_dir` of the test."""
    name, *rest = map(str, args)
    return subprocess.Popen(
        [sys.executable, str(HERE / name), *rest],
        env=here(),
        preexec_fn=limit,  # noqa: PLW1509  no thread
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(*args: object, limit: Callable[[], None] | None = None) -> tuple[list[str], str]:
    """(words on standard output, standard error) of such a program, which ends as it should."""
    with begun(*args, limit=limit) as process:
        out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    return out.splitlines(), err


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
    process = begun("programs.py", program)
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

    said, errors = ran("programs.py", "fills_the_disk", limit=limit)
    assert said == [str(sum(range(20_000)))]
    assert errors.count("loaderscope:") == 1
    assert "recording stopped" in errors and "training goes on" in errors
    assert len(recorded(runs_dir)) > 100
