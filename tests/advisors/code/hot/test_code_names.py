"""Code for hot functions names only what the data set was seen to hold, by the way that leads
there."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loaderscope.advisors.case.code_text import free_names
from loaderscope.advisors.code.hot.element_code import elements_code
from loaderscope.advisors.code.hot.frame_rows import rows_code
from loaderscope.advisors.code.hot.function_code import hf_code
from rule_cases import case_of
from rule_rows import main_loop

HOT = cast("Any", SimpleNamespace(place="rows.py:4", text="row = self.rows[index]"))
TYPES = {
    "hf": "datasets.arrow_dataset.Dataset",
    "dataframe": "pandas.DataFrame",
    "tensor": "torch.Tensor",
}


def code_of(path: Path, write: Any, dataset: dict[str, Any]) -> str:
    case = case_of(
        path,
        main_loop(30, fetch=1.0),
        inspection={"dataset": {"type": "t.Rows", "name": "Rows", **dataset}},
    )
    return str(write(case, HOT))


@pytest.mark.parametrize("write", [hf_code, rows_code, elements_code])
def test_what_was_not_seen_is_not_named(tmp_path: Path, write: Any) -> None:
    rows = {"attributes": [{"name": "rows", "kind": "other", "type": "Stream"}]}
    assert not free_names(ast.parse(code_of(tmp_path, write, rows)))


@pytest.mark.parametrize(("write", "kind"), [(hf_code, "hf"), (rows_code, "dataframe")])
def test_what_a_wrapped_data_set_holds_is_reached_through_it(tmp_path, write, kind):
    held = {"name": "held", "kind": kind, "type": TYPES[kind]}
    outer = {"name": "inner", "kind": "dataset", "type": "t.Rows"}
    inner = {"type": "t.Rows", "name": "Rows", "attributes": [held]}
    code = code_of(tmp_path, write, {"attributes": [outer], "children": [inner]})
    assert "dataset.inner.held" in code
