"""A terminal that is not UTF-8 gets ASCII, as wide as before."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.color import Color

from builders import RunBuilder
from dashboard_samples import train
from loaderscope.tui import ascii
from loaderscope.tui.app import Dashboard


def test_each_character_becomes_one_of_ascii() -> None:
    drawn = [Segment("┌─ ● wait ▁▃▇█ … → 漢 ┐")]
    (shown,) = ascii.Ascii().apply(drawn, Color(0, 0, 0))
    assert shown.text.isascii() and len(shown.text) == len(drawn[0].text)
    assert shown.text.startswith("+- * wait _-%# . >")


@pytest.mark.parametrize(("encoding", "plain"), [("utf-8", False), ("iso-8859-1", True)])
def test_by_the_encoding_of_the_terminal(
    encoding: str, plain: bool, runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunBuilder(runs_dir)
    train(run)
    monkeypatch.setattr(sys, "__stdout__", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    app = Dashboard(run.path)
    assert any(isinstance(each, ascii.Ascii) for each in app._filters) is plain
