"""Which advice is patched, and that what is fetched by patched code is the same."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from dashboard_samples import REPORT, recommendation
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Change, Report
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.lines import change_fetching
from loaderscope.fixing.patch import chosen, make_patch, open_project, with_diffs
from loaderscope.fixing.project import CannotPatch, Project
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import Inspection
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from made_projects import PROJECTS, lay, loader_of, without_loop
from switch_data import same

GOLDEN = Path(__file__).with_name("golden")

CELL = "x = 1\nloader = DataLoader(rows, batch_size=4)\n"
LINE = {"line": 2, "end_line": 2, "column": 9, "end_column": 39}
GAINS = (1.2, 1.3, 1.4)
WORKERS = recommendation("num-workers", "4", *GAINS, change=Change({"num_workers": 4}, ""))
DROPS = recommendation("drop-last", "Drop", *GAINS, change=Change({"drop_last": True}, ""))


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


def test_reports_take_the_patches_that_can_be_made(runs_dir: Path, tmp_path: Path) -> None:
    line = {**LINE, "file": str(tmp_path / "a.py")}
    run = recorded(runs_dir, {"lines": [line]}, lay(tmp_path, {"a.py": CELL}))
    other = recommendation("pin-memory", "By hand", *GAINS)
    report = with_diffs(report_of(run, WORKERS, other), run, tmp_path)
    found, none = (each.change.diff for each in report.loaders[0].recommendations)
    assert none is None and found is not None
    assert found.startswith("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-loader = ")
    assert Report.from_json(report.to_json()) == report
    assert with_diffs(report, run, tmp_path / "runs") == report
    project, loader = open_project(run, tmp_path), report.loaders[0]
    alike = [make_patch(run, project, loader, each).same_batches for each in (WORKERS, DROPS)]
    assert alike == [True, False]


LINES: Any = ([{"file": 3}], "x", [{"line": -1}])


@pytest.mark.parametrize("made", [{}, [], *({"lines": lines} for lines in LINES)])
def test_damaged_lines_are_refused(made: Any, runs_dir: Path, tmp_path: Path) -> None:
    run = recorded(runs_dir, made)
    report, project = report_of(run, WORKERS), open_project(run, tmp_path)
    says = "." if made else "did not see where this loader was made"
    with pytest.raises(CannotPatch, match=says):
        make_patch(run, project, report.loaders[0], WORKERS)


def test_which_advice_is_meant() -> None:
    report = Report(2, *[None] * 4)  # type: ignore[arg-type]
    several = replace(report, loaders=(REPORT,))
    assert chosen(several, None)[1].rule == "num-workers"
    assert chosen(several, 2)[1].rule == "distributed-sampler"
    with pytest.raises(UsageError, match="there is no advice 3: it has 2"):
        chosen(several, 3)
    with pytest.raises(UsageError, match="recommends nothing to change"):
        chosen(replace(report, loaders=()), None)


def some(loader: Any) -> list[Any]:
    """Some batches, also of a data set that has been to another process."""
    data = pickle.loads(pickle.dumps(loader.dataset))
    assert str(data[0]) == str(loader.dataset[0])
    return [batch for batch, _ in zip(loader, range(3), strict=False)]


def test_the_batches_are_the_same(tmp_path: Path) -> None:
    files = without_loop(PROJECTS["rows_one_by_one"].files)
    hashes = lay(tmp_path, files)
    with loader_of(tmp_path) as loader:
        inspection = fitted(inspect_loader(loader), Inspection)
        before = some(loader)
    recorded: Any = SimpleNamespace(inspection=inspection)
    edits, project = Edits(), Project(tmp_path, hashes)
    assert change_fetching(project, edits, recorded)
    changes = edits.changes()
    golden = GOLDEN / "rows_one_by_one.diff"
    if os.environ.get("LOADERSCOPE_UPDATE_GOLDEN"):
        golden.write_text(unified_diff(changes))
    assert unified_diff(changes) == golden.read_text()
    lay(tmp_path, {**files, **{each.path: each.after.decode() for each in changes}})
    with loader_of(tmp_path) as loader:
        assert same(some(loader), before)
