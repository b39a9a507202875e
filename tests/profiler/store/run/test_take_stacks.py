"""Asking a live run for stacks: one sentence for everything that can go wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builders import RunBuilder
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.take_stacks import take_stacks
from loaderscope.profiler.store.stacks.stack_request import REQUEST


@pytest.fixture
def path(runs_dir: Path) -> Path:
    return RunBuilder(runs_dir).path


def says(*states: str) -> Iterator[str]:
    """One state after another, the last for ever."""
    yield from states
    while True:
        yield states[-1]


def test_a_run_that_is_not_live_is_not_asked(path: Path) -> None:
    with pytest.raises(UsageError, match="of a live run only"):
        take_stacks(path)
    assert not (path / REQUEST).exists()


def test_a_run_that_ends_meanwhile_is_not_waited_for(path: Path) -> None:
    states = says("live", "finished")
    with pytest.raises(UsageError, match="ended before its stacks were taken"):
        take_stacks(path, True, 3.0, state=lambda _: next(states))
    asked = json.loads((path / REQUEST).read_text())
    assert (asked["native"], asked["seconds"]) == (True, 3.0)


def test_a_sampler_that_does_not_answer_is_not_waited_for_for_ever(path: Path) -> None:
    with pytest.raises(UsageError, match="does not answer"):
        take_stacks(path, wait_s=0.0, state=lambda _: "live")


def test_what_cannot_be_asked_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        take_stacks(tmp_path / "gone", state=lambda _: "live")


def test_waiting_needs_no_main_thread(path: Path) -> None:
    """The dashboard waits in a thread of its own."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(UsageError):
        pool.submit(take_stacks, path, wait_s=0.0, state=lambda _: "live").result(30)
