"""What `loaderscope run` starts."""

import os
import sys

from loaderscope.profiler.launch import command_line


def executable(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_a_command_is_found_beside_python_where_the_path_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
    assert command_line(["torchrun", "--nproc-per-node", "2", "train.py"]) == [
        torchrun,
        "--nproc-per-node",
        "2",
        "train.py",
    ]
    first = executable(tmp_path / "bin" / "torchrun")
    assert command_line(["torchrun"]) == [first]
