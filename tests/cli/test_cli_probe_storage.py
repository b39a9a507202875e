"""`loaderscope probe-storage`: what it prints, what it returns, and that it leaves nothing
behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.cli import main
from started import LOADERSCOPE, here, until

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
    assert ".npy: 12 files" in out and "What this means" in out and err == ""
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
def test_what_cannot_be_done_is_one_sentence(arguments, says, run, runs_dir, fails, monkeypatch):
    monkeypatch.chdir(runs_dir)
    assert says in fails("probe-storage", *arguments)


def test_ctrl_c_leaves_nothing_behind(data: Path, temp: Path) -> None:
    for n in range(100):  # so much that the probe cannot have ended before the signal
        np.save(data / f"large-{n}.npy", np.full((64, 1024), n))
    command = [*LOADERSCOPE, "probe-storage", data, "--temp", temp, "--seconds", "14"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=here(), **pipes) as process:
        until(lambda: process.poll() is not None or list(temp.glob("*/*")), "it copies")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert os.listdir(temp) == []
    assert b"Traceback" not in err
