"""The code that hot-function writes does what it says, on data of its own."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.case.code_text import free_names, told_by_hand
from loaderscope.advisors.code.hot.function_code import here, hf_code, stored_code
from loaderscope.advisors.code.hot.function_kinds import FUNCTION_KINDS
from loaderscope.advisors.code.hot.kind import Hot
from loaderscope.profiler.store.inspection import Inspection
from rule_cases import case_of, ran
from rule_rows import main_loop


class Bare:
    """A case of which nothing is known."""

    def __init__(self) -> None:
        self.dataset = None
        self.config: dict[str, Any] = {}
        self.inspection = Inspection()


CASE = cast("Case", Bare())
HOT = Hot(FUNCTION_KINDS[0], 0.5, 0.4, 0.6, "patches.py:41", "x = slow(path)", None)


def defined(code: Callable[[Case, Hot], str]) -> dict[str, Any]:
    """The names that the code defines before it touches the user's data set."""
    lines = code(CASE, HOT).split("\n")
    return ran("\n".join(line for line in lines if not line.startswith("dataset.")))


@pytest.mark.parametrize("family", [f for f in FUNCTION_KINDS if not f.waits], ids=lambda f: f.key)
def test_every_family_has_a_remedy_with_code_that_names_the_place(family: Any) -> None:
    """Nothing is known of the case: what changes nothing by running says so."""
    code = family.code(CASE, HOT)

    assert "patches.py:41: x = slow(path)" in code
    assert family.title[0].isupper() and family.why.endswith(".") and family.caveat.endswith(".")
    told = told_by_hand(code)
    nodes = ast.parse(told).body
    changes = any(isinstance(node, ast.Assign | ast.Expr | ast.For) for node in nodes)
    assert changes or "by hand" in told.lower()
    assert told_by_hand(told) == told and told_by_hand("loader = 3\n") == "loader = 3\n"


def test_rows_are_stored_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / "t.npy")
    defined(stored_code("tables"))["store"](lambda n: np.full((3, 2), n, np.float32), 5, path)
    rows = np.load(path, mmap_mode="r")
    assert rows.shape == (5, 3, 2) and rows.dtype == np.float32 and rows[4].tolist() == [[4, 4]] * 3


def test_a_place_is_one_printable_line() -> None:
    evil = Hot(FUNCTION_KINDS[0], 0.5, 0.4, 0.6, "a\nimport os", "b\u2028c\rd", None)

    assert here(evil).isprintable()


def test_what_was_not_seen_is_not_named(tmp_path: Path) -> None:
    rows = {"attributes": [{"name": "rows", "kind": "other", "type": "Stream"}]}
    inspection = {"dataset": {"type": "t.Rows", "name": "Rows", **rows}}
    case = case_of(tmp_path, main_loop(30, fetch=1.0), inspection=inspection)
    assert not free_names(ast.parse(hf_code(case, HOT)))
