"""What real loaders wait for, and what more workers are said to bring them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loaderscope.advisors.stage_model.wait_kinds import wait_kinds
from loaderscope.advisors.whatif import WhatIf, workload_of
from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy
from loaderscope.profiler.store.run.run_reader import open_run
from started import here, python

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="stacks are taken on Linux"),
    pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed"),
    pytest.mark.timeout(240),
]

PROGRAM = """
import multiprocessing, os, sys, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset
import loaderscope

torch.set_num_threads(1)
kind, workers = sys.argv[1], int(sys.argv[2])

class Waiting(Dataset):
    def __init__(self):
        self.lock = multiprocessing.Lock()
    def __len__(self):
        return 1_000_000
    def __getitem__(self, index):
        if kind == "lock":
            with self.lock:
                time.sleep(0.004)
        else:
            time.sleep(0.004)
        return torch.ones(4)

loader = DataLoader(Waiting(), batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None)
loaderscope.watch(loader)
begun = time.monotonic()
runs = Path(os.environ["LOADERSCOPE_DIR"])
for count, batch in enumerate(loader):
    if list(runs.glob("2*/system-*/stacks-0.json")) or time.monotonic() - begun > 90:
        break
"""


@pytest.mark.parametrize(
    ("kind", "workers", "seen", "gain"),
    [("lock", 3, "shared lock", (0.6, 1.3)), ("sleep", 1, "sleep", (1.6, 8.5))],
)
def test_more_workers_help_where_waits_overlap_and_not_behind_a_lock(
    tmp_path: Path, kind: str, workers: int, seen: str, gain: tuple[float, float]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    env = here(LOADERSCOPE_DIR=str(tmp_path), LOADERSCOPE_STACKS="eager")
    python("-W", "ignore", script, kind, workers, env=env, check=True)
    run = open_run("latest", tmp_path)
    process, loader = run.processes[0], run.loaders[0]
    kinds = wait_kinds(run, process, loader)
    assert kinds is not None, run.systems[0].bursts
    assert kinds.share(seen) > 0.5, kinds
    whatif = WhatIf(workload_of(run, process, loader))
    low, high = gain
    assert low < whatif.predict(num_workers=8).mid < high
    assert whatif.workload.sharing.held > 0.5 if kind == "lock" else whatif.unknown_share < 0.2
