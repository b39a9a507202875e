"""Whole batches are fetched at once; what the edited code gives is the same."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.lines import change_fetching
from loaderscope.fixing.project import Project
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import read_inspection
from made_projects import PROJECTS, lay, loader_of, without_loop
from switch_data import same

GOLDEN = Path(__file__).with_name("golden")


def some(loader: Any) -> list[Any]:
    """Some batches, also of a data set that has been to another process."""
    data = pickle.loads(pickle.dumps(loader.dataset))
    assert str(data[0]) == str(loader.dataset[0])
    return [batch for batch, _ in zip(loader, range(3), strict=False)]


def test_the_batches_are_the_same(tmp_path: Path) -> None:
    files = without_loop(PROJECTS["rows_one_by_one"].files)
    hashes = lay(tmp_path, files)
    with loader_of(tmp_path) as loader:
        inspection = read_inspection({"inspection": inspect_loader(loader)})
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
