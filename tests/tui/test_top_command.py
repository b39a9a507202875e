"""`loaderscope top` and `run --live` where they cannot work: one sentence, exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import RunBuilder, loop
from loaderscope.cli import main


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("loaderscope: ")
    assert err.count("\n") == 1
    return err


def test_nothing_recorded_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing has been recorded" in said(capsys, "top")


def test_an_unknown_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no run" in said(capsys, "top", "20990101")


def test_a_directory_that_is_no_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "not a run directory" in said(capsys, "top", str(tmp_path))


def test_no_terminal(capsys: pytest.CaptureFixture[str], runs_dir: Path) -> None:
    RunBuilder(runs_dir).process().loader(loop(3))
    assert "needs a terminal" in said(capsys, "top")
    assert "needs a terminal" in said(capsys, "run", "--live", "train.py")
    assert not list(runs_dir.glob("2026*"))


def test_both_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "top" in capsys.readouterr().out
    assert main(["run", "--help"]) == 0
    assert "--live" in capsys.readouterr().out
