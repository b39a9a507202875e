"""The run that screens are drawn of."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import RunBuilder
from dashboard_samples import sampled, train


@pytest.fixture
def run(runs_dir: Path) -> RunBuilder:
    built = RunBuilder(runs_dir)
    train(built)
    sampled(built)
    return built
