"""`loaderscope stacks` beside a real training, and what the report says of it afterwards."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy
from started import LOADERSCOPE, Ended, going_on, here, ran

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


def command(runs: Path, *args: str) -> Ended:
    return ran([*LOADERSCOPE, *args], env=environment(runs))


def environment(runs: Path) -> dict[str, str]:
    return here(LOADERSCOPE_DIR=str(runs), LOADERSCOPE_STACKS="0")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run that is going on, in which stacks are taken only when asked for."""
    script, runs = tmp_path / "train.py", tmp_path / "runs"
    script.write_text(TRAINING)
    with going_on([*LOADERSCOPE, "run", "--quiet", str(script)], runs, env=environment(runs)):
        yield runs


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
