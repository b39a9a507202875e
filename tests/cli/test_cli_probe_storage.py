"""`loaderscope probe-storage`: what it prints and returns, and that it leaves nothing behind."""

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


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """One of data, and one for copies of it."""
    data, temp = tmp_path / "data", tmp_path / "temp"
    for folder in (data, temp):
        folder.mkdir()
    for n in range(12):
        np.save(data / f"{n}.npy", np.full((8, 8), n))
    return data, temp


def test_a_folder_is_probed_and_told_as_text_and_as_json_in_a_file(folders, tmp_path, capsys):
    data, temp = map(str, folders)
    target, probing = tmp_path / "probe.json", ("probe-storage", data, "--seconds", "20")
    assert main([*probing, "--temp", temp]) == 0
    out, err = capsys.readouterr()
    assert ".npy: 12 files" in out and "What this means" in out and err == ""
    options = f"--temp {temp} --files 5 --bytes 1MB --format json -o {target}"
    assert main([*probing, *options.split()]) == 0
    assert capsys.readouterr().out == ""
    found = json.loads(target.read_text(encoding="utf-8"))
    assert (found["schema"], found["samples"], found["whole_files"]) == (3, 5, 12)
    files, *_, array = found["layouts"]
    assert files["gain"] is None and array["gain"].keys() == {"low", "mid", "high"}
    assert os.listdir(temp) == []


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


def test_ctrl_c_leaves_nothing_behind(folders: tuple[Path, Path]) -> None:
    data, temp = folders
    for n in range(100):  # so much that the probe cannot have ended before the signal
        np.save(data / f"large-{n}.npy", np.full((64, 1024), n))
    command = [*LOADERSCOPE, "probe-storage", data, "--temp", temp, "--seconds", "14"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=here(), **pipes) as process:
        until(lambda: process.poll() is not None or list(temp.glob("*/*")), "it copies")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)
    assert (process.returncode, os.listdir(temp)) == (130, []) and b"Traceback" not in err
