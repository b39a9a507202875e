"""A needless call goes, whole batches are fetched at once; what the edited code gives is the same."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard_samples import measured, recommendation
from loaderscope.advisors.code.python_text import CannotEdit
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.lines import change_fetching, leave_out
from loaderscope.fixing.project import Project
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import read_inspection
from made_projects import PROJECTS, lay, loader_of, without_loop
from switch_data import same

GOLDEN = Path(__file__).with_name("golden")


def advised(place: str) -> Any:
    evidence = measured({"line": place})
    return recommendation("hot-function", "Leave out gc.collect()", 1, 1, 2, evidence=evidence)


def left_out(folder: Path, source: str, place: str = "a.py:2") -> str | None:
    edits, project = Edits(), Project(folder, lay(folder, {"a.py": source}))
    if not leave_out(project, edits, advised(place)):
        return None
    (change,) = edits.changes()
    return change.after.decode()


def some(loader: Any) -> list[Any]:
    """Some batches, also of a data set that has been to another process."""
    data = pickle.loads(pickle.dumps(loader.dataset))
    assert str(data[0]) == str(loader.dataset[0])
    return [batch for batch, _ in zip(loader, range(3), strict=False)]


@pytest.mark.parametrize("name", [name for name, each in PROJECTS.items() if each.advice is None])
def test_the_batches_are_the_same(name: str, tmp_path: Path) -> None:
    files = without_loop(PROJECTS[name].files)
    hashes = lay(tmp_path, files)
    with loader_of(tmp_path) as loader:
        inspection = read_inspection({"inspection": inspect_loader(loader)})
        before = some(loader)
    recorded: Any = SimpleNamespace(inspection=inspection)
    edits, project = Edits(), Project(tmp_path, hashes)
    if name == "rows_one_by_one":
        assert change_fetching(project, edits, recorded)
    else:
        number = files["data.py"].split("\n").index("        gc.collect()  # memory was short once")
        assert leave_out(project, edits, advised(f"data.py:{number + 1}"))
    changes = edits.changes()
    golden = GOLDEN / f"{name}.diff"
    if os.environ.get("LOADERSCOPE_UPDATE_GOLDEN"):
        golden.write_text(unified_diff(changes))
    assert unified_diff(changes) == golden.read_text()
    lay(tmp_path, {**files, **{each.path: each.after.decode() for each in changes}})
    with loader_of(tmp_path) as loader:
        assert same(some(loader), before)


COLLECTS = "def made(index):\n{}\n    return index\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("    gc.collect()  # memory", "def made(index):\n    return index\n"),
        ("    if index: gc.collect()", CannotEdit),
        ("    gc.collect(); index = 1", CannotEdit),
        ("    print(gc.collect())", None),
        ("    gather.collect()", None),
    ],
)
def test_only_a_line_of_its_own_goes(line: str, after: Any, tmp_path: Path) -> None:
    source = COLLECTS.format(line)
    if after is CannotEdit:
        with pytest.raises(CannotEdit):
            left_out(tmp_path, source)
    else:
        assert left_out(tmp_path, source) == after
    assert left_out(tmp_path, source, "b.py:2") is left_out(tmp_path, source, "a.py:3") is None


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_block_without_its_only_statement_passes(newline: str, tmp_path: Path) -> None:
    block = "    if index:{0}        {1}{0}"
    source = COLLECTS.format(block.format("\n", "gc.collect()").rstrip()).replace("\n", newline)
    after = left_out(tmp_path, source, "a.py:3")
    assert after == source.replace("gc.collect()", "pass")
