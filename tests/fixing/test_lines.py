"""Waste inside data sets and functions is edited by shape: the diff is the golden one, and what the
edited code gives is the same."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.lines import change_fetching, change_lines
from loaderscope.fixing.project import Project
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import read_inspection
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from made_projects import PROJECTS, lay, loader_of, without_loop

GOLDEN = Path(__file__).with_name("golden")
OTHER_VALUES = ("picture_filtered_whole",)
NEEDS = {"searched_frame": "pandas", "picture_filtered_whole": "PIL"}


def some(loader: Any) -> list[Any]:
    """Some batches, also of a data set that has been to another process."""
    data = pickle.loads(pickle.dumps(loader.dataset))
    assert str(data[0]) == str(loader.dataset[0])
    return [batch for batch, _ in zip(loader, range(3), strict=False)]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return len(one) == len(other) and all(map(same, one, other))


@pytest.mark.parametrize("name", [name for name, each in PROJECTS.items() if each.advice is None])
def test_a_line_is_edited_by_its_shape(name: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS.get(name, "torch"))
    files = without_loop(PROJECTS[name].files)
    hashes = lay(tmp_path, files)
    with loader_of(tmp_path) as loader:
        inspection = read_inspection({"inspection": inspect_loader(loader)})
        before = some(loader)
    recorded: Any = SimpleNamespace(inspection=inspection, looks=SampledFetches())
    report: Any = SimpleNamespace(findings=())
    edits, project = Edits(), Project(tmp_path, hashes)
    if name == "rows_one_by_one":
        found = change_fetching(project, edits, recorded)
    else:
        found = change_lines(project, edits, report, recorded)  # type: ignore[assignment]
    assert found is (name not in OTHER_VALUES)
    assert bool(edits.said) is (name != "rows_one_by_one")
    changes = edits.changes()
    golden = GOLDEN / f"{name}.diff"
    if os.environ.get("LOADERSCOPE_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(unified_diff(changes))
    assert unified_diff(changes) == golden.read_text()
    lay(tmp_path, {**files, **{each.path: each.after.decode() for each in changes}})
    with loader_of(tmp_path) as loader:
        assert same(some(loader), before) is (name not in OTHER_VALUES)
