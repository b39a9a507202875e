"""What all tests of measuring share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_sampler(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops here start none: tests/profiler/daemon starts those that it looks at."""
    monkeypatch.setenv("LOADERSCOPE_SYSTEM", "0")
