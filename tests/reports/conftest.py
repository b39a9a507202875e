"""The run and the report with everything in them, which every format shows."""

from __future__ import annotations

import pytest

from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from report_samples import full_report, full_run

BATCHES = 260


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return full_run(tmp_path_factory.mktemp("runs"), batches=BATCHES)


@pytest.fixture(scope="session")
def report(run: Run) -> Report:
    return full_report(run)
