"""`loaderscope stacks` beside a real training, and what the report says of it afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="stacks are taken on Linux"),
    pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed"),
    pytest.mark.timeout(240),
]

TRAINING = """
import time
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        return decode(index)

def decode(index):
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end:
        pass
    return index

if __name__ == "__main__":
    for batch in DataLoader(Slow(), batch_size=4, num_workers=1):
        pass
"""
PATIENCE_S = 60.0


def command(runs: Path, *args: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "loaderscope", *args]
    return subprocess.run(
        call, env=environment(runs), capture_output=True, text=True, timeout=200, check=False
    )


def environment(runs: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, sys.path))
    return {
        **os.environ,
        "LOADERSCOPE_DIR": str(runs),
        "PYTHONPATH": path,
        "LOADERSCOPE_STACKS": "0",
    }


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run that is going on, in which stacks are taken only when asked for."""
    script, runs = tmp_path / "train.py", tmp_path / "runs"
    script.write_text(TRAINING)
    call = [sys.executable, "-m", "loaderscope", "run", "--quiet", str(script)]
    process = subprocess.Popen(
        call,
        env=environment(runs),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not list(runs.glob("*/system-*/machine*")) or not list(runs.glob("*/p*/batches0*")):
            assert process.poll() is None and time.monotonic() < deadline, (
                "the training did not begin"
            )
            time.sleep(0.05)
        yield runs
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_live_run_is_asked_and_answers(live: Path, tmp_path: Path) -> None:
    done = command(live, "stacks", "--seconds", "2")
    if "not permitted" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    fetch = done.stdout.partition("\nfetch\n")[2].partition("\n\n")[0]
    assert re.search(r"decode +train\.py:", fetch)
    assert "return decode(index)" in fetch or "in Slow.__getitem__" in fetch

    target = tmp_path / "stacks.json"
    done = command(live, "stacks", "--seconds", "1", "-o", str(target))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = json.loads(target.read_text())
    names = [frame["name"] for frame in found["shared"]["frames"]]
    assert any(name.endswith("decode") for name in names)
    assert found["profiles"][0]["name"].startswith("fetch: worker 0 (process ")
    assert 0 < found["profiles"][0]["endValue"] < 3

    report = command(live, "report", "--full")
    assert report.returncode == 0
    assert re.search(r"Inside fetch\n(.*\n)+.*decode +train\.py:", report.stdout)
