"""No system sampler; no loader is left watched. Only forked workers share files and threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import loaderscope
from loaderscope.tuning.evidence import program
from loaderscope.tuning.tune import say_nothing


@pytest.fixture(autouse=True)
def alone(forked: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOADERSCOPE_SYSTEM", "0")
    monkeypatch.setenv("LOADERSCOPE_STACKS", "0")
    monkeypatch.setattr(program, "files", lambda: ())  # other tests', which are in this process
    yield
    loaderscope.unwatch()
    say_nothing()  # when pytest ends
