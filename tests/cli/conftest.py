"""What the tests of verbs share: a recorded run, and what a verb prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.cli import main

Said = Callable[..., str]


@pytest.fixture
def run(runs_dir: Path) -> RunBuilder:
    run = RunBuilder(runs_dir)
    rows = loop(60, wait_ms=5, fetch_ns=4_000_000)
    run.process().loader(rows, epochs=[epoch_row(rows)])
    return run


@pytest.fixture
def shows(capsys: pytest.CaptureFixture[str]) -> Said:
    """What a verb prints that exits with 0."""

    def printed(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return printed


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Said:
    """The one sentence of a verb that exits with 2."""

    def sentence(*arguments: str) -> str:
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith("loaderscope: ") and err.endswith("\n")
        return err.removeprefix("loaderscope: ")

    return sentence
