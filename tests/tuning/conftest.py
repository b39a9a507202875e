"""No system sampler; no loader is left watched, and nothing to be told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import loaderscope
from loaderscope.tuning.evidence import program
from loaderscope.tuning.tune import say_nothing


@pytest.fixture(autouse=True)
def what_workers_share(forked: None) -> None:
    """Positions of files and threads are no matter of workers that are started otherwise."""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOADERSCOPE_SYSTEM", "0")
    monkeypatch.setenv("LOADERSCOPE_STACKS", "0")
    monkeypatch.setattr(program, "files", lambda: ())  # other tests', which are in this process
    yield
    loaderscope.unwatch()
    say_nothing()  # when pytest ends
