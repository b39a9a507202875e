"""What `loaderscope run` starts."""

import os
import sys

from loaderscope.profiler.launch import command_line


def test_a_command_is_found_beside_python_where_the_path_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    ours, first = os.path.join(os.path.dirname(sys.executable), "torchrun"), tmp_path / "torchrun"
    rest = ["--nproc-per-node", "2", "train.py"]
    assert command_line(["torchrun", *rest]) == [ours, *rest]
    first.write_text("#!/bin/sh\n")
    first.chmod(0o755)
    assert command_line(["torchrun"]) == [str(first)]
