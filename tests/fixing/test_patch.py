"""Which advice is patched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from dashboard_samples import REPORT, recommendation
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Change, Report
from loaderscope.fixing.patch import chosen, make_patch, open_project, with_diffs
from loaderscope.fixing.project import CannotPatch
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from made_projects import lay

CELL = "x = 1\nloader = DataLoader(rows, batch_size=4)\n"
LINE = {"line": 2, "end_line": 2, "column": 9, "end_column": 39}
WORKERS = recommendation(
    "num-workers", "Use 4 workers", 1.3, 1.4, 1.5, change=Change({"num_workers": 4}, "")
)


def recorded(runs: Path, made: dict[str, object], files: dict[str, str] | None = None) -> Run:
    builder, rows = RunBuilder(runs), loop(60, wait_ms=5, fetch_ns=4_000_000)
    builder.process().loader(rows, epochs=[epoch_row(rows)])
    (file,) = builder.path.glob("p*/loader0.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "made": made}))
    (file.parent / "sources.json").write_text(json.dumps({"format": 1, "files": files or {}}))
    return open_run(builder.path)


def report_of(run: Run, *advice: object) -> Report:
    report = build_report(run, advice=False)
    return replace(report, loaders=(replace(report.loaders[0], recommendations=advice),))


def in_a_file(runs: Path, folder: Path) -> Run:
    """A run whose loader is made in `a.py` of this folder."""
    line = {**LINE, "file": str(folder / "a.py")}
    return recorded(runs, {"lines": [line]}, lay(folder, {"a.py": CELL}))


def test_reports_take_the_patches_that_can_be_made(runs_dir: Path, tmp_path: Path) -> None:
    run = in_a_file(runs_dir, tmp_path)
    other = recommendation("pin-memory", "By hand", 1.1, 1.2, 1.3)
    report = with_diffs(report_of(run, WORKERS, other), run, tmp_path)
    found, none = (each.change.diff for each in report.loaders[0].recommendations)
    assert none is None and found is not None
    assert found.startswith("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-loader = ")
    assert Report.from_json(report.to_json()) == report
    elsewhere = with_diffs(report, run, tmp_path / "runs")
    assert elsewhere == report


LINES: Any = ([{"file": 3}], "x", [{"line": -1}])


@pytest.mark.parametrize("made", [{}, [], *({"lines": lines} for lines in LINES)])
def test_damaged_lines_are_refused(made: Any, runs_dir: Path, tmp_path: Path) -> None:
    run = recorded(runs_dir, made)
    report = report_of(run, WORKERS)
    with pytest.raises(
        CannotPatch, match="." if made else "did not see where this loader was made"
    ):
        make_patch(run, open_project(run, tmp_path), report.loaders[0], WORKERS)


def test_which_advice_is_meant() -> None:
    report = Report(2, *[None] * 4)  # type: ignore[arg-type]
    several = replace(report, loaders=(REPORT,))
    assert chosen(several, None)[1].rule == "num-workers"
    assert chosen(several, 2)[1].rule == "distributed-sampler"
    with pytest.raises(UsageError, match="there is no advice 3: it has 2"):
        chosen(several, 3)
    with pytest.raises(UsageError, match="recommends nothing to change"):
        chosen(replace(report, loaders=()), None)
