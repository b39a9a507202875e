"""Asking a live run for stacks: one sentence for everything that can go wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders import RunBuilder
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run import take_stacks as module
from loaderscope.profiler.store.run.take_stacks import take_stacks
from loaderscope.profiler.store.stacks.stack_samples import REQUEST


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["finished"], "of a live run only"),
        (["live", "finished"], "ended before its stacks were taken"),
        (["live", "live"], "does not answer"),
    ],
)
def test_a_run_that_takes_none(runs_dir: Path, monkeypatch, states: list[str], said: str) -> None:
    path, asked = RunBuilder(runs_dir).path, len(states) > 1
    monkeypatch.setattr(module, "state_of", lambda *_: states.pop(0))
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(module, "WAIT_S", -3.0)
    with pytest.raises(UsageError, match=said):
        take_stacks(path, 3.0)
    assert (path / REQUEST).exists() == asked
    if asked:
        found = json.loads((path / REQUEST).read_text())
        assert found["seconds"] == 3.0


def test_what_cannot_be_asked_says_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "state_of", lambda *_: "live")
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        take_stacks(tmp_path / "gone")
