"""The tests of tuning ask for no system sampler, and leave no loader watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import loaderscope


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOADERSCOPE_SYSTEM", "0")
    monkeypatch.setenv("LOADERSCOPE_STACKS", "0")
    yield
    loaderscope.unwatch()
