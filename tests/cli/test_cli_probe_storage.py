"""`loaderscope probe-storage`: what it prints, what it returns, and that it leaves nothing
behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from builders import RunBuilder, loop
from loaderscope.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for n in range(12):
        np.save(folder / f"{n}.npy", np.full((8, 8), n))
    return folder


@pytest.fixture
def temp(tmp_path: Path) -> Path:
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder


def test_a_folder_is_probed(data: Path, temp: Path, capsys: Capture) -> None:
    assert main(["probe-storage", str(data), "--seconds", "20", "--temp", str(temp)]) == 0
    out, err = capsys.readouterr()
    assert ".npy: 12 files" in out
    assert "What this means" in out
    assert err == ""
    assert os.listdir(temp) == []


def test_as_json_and_into_a_file(data: Path, temp: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "probe.json"
    options = f"--seconds 20 --temp {temp} --files 5 --bytes 1MB --format json -o {target}"
    assert main(["probe-storage", str(data), *options.split()]) == 0
    assert capsys.readouterr().out == ""
    found = json.loads(target.read_text(encoding="utf-8"))
    assert (found["samples"], found["whole_files"]) == (5, 12)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "not seen to open any files: name the folder of the data instead"),
        ([".", "--bytes", "many"], "is not a size"),
        ([".", "--seconds", "0"], "seconds"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str],
    says: str,
    runs_dir: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    RunBuilder(runs_dir).process().loader(loop(5))
    monkeypatch.chdir(runs_dir)
    assert main(["probe-storage", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_behind(
    number: signal.Signals, code: int, data: Path, temp: Path
) -> None:
    for n in range(100):  # so much that the probe cannot have ended before the signal
        np.save(data / f"large-{n}.npy", np.full((64, 1024), n))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    options = ["probe-storage", str(data), "--temp", str(temp), "--seconds", "14"]
    command = [sys.executable, "-m", "loaderscope", *options]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        until = time.monotonic() + 120
        while not list(temp.glob("*/*")):  # it copies
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
    assert process.returncode == code
    assert os.listdir(temp) == []
    assert b"Traceback" not in err
