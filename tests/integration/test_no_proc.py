"""Without /proc, as on macOS: all but the machine's figures, which say why they are missing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from loaderscope import Report
from loaderscope.profiler.base import liveness
from started import LOADERSCOPE, here, ran

TRAIN = """\
import torch
from torch.utils.data import DataLoader

for batch in DataLoader(torch.rand(4000, 8), batch_size=20, num_workers=1):
    batch.sum()
"""

HIDDEN = 'mount -t tmpfs none /proc && exec "$@"'
ALONE = ["unshare", "--mount", "--propagation", "private", "sh", "-c", HIDDEN, "sh"]


def may_hide_it() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_hide_it(), reason="nobody here may hide /proc")
def test_a_training_is_recorded_without_proc(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    env = here(LOADERSCOPE_DIR=str(tmp_path / "runs"), LOADERSCOPE_PURE="1")
    for words in (["run", "--quiet", "train.py"], ["report", "--format", "json", "-o", "it.json"]):
        done = ran([*ALONE, *LOADERSCOPE, *words], cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    report = Report.from_json((tmp_path / "it.json").read_text())
    (loader,) = report.loaders
    assert loader.batches == 200 and report.run.state == "finished"
    assert {"fetch", "collate", "pack", "unpack", "wait", "compute"} <= set(loader.stages)
    (host,) = (tmp_path / "runs").glob("*/system-*/host.json")
    told = json.loads(host.read_text())
    assert told["mem_total_bytes"] is None and "memory cannot be read" in str(told["reasons"])


def test_a_process_that_nothing_tells_of_lives_while_signals_reach_it(monkeypatch):
    def unknown(pid: int | None = None) -> None:
        raise psutil.NoSuchProcess(pid or os.getpid())

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    created = liveness.created_here()
    assert created is not None and created > 1e9
    monkeypatch.setattr(psutil, "Process", unknown)
    found = liveness.Liveness()
    assert liveness.created_here() is None
    assert found.state(found.host, found.boot_id, os.getpid(), created) == "live"
    assert found.state(found.host, found.boot_id, ended.pid, created) == "crashed"
