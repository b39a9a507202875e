"""The code that hot-function writes does what it says, on data of its own. A stage that takes longer
and longer is told from one that is only longer for larger batches, or on a slower machine."""

import ast
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.case.code_text import free_names, told_by_hand
from loaderscope.advisors.code.by_hand import grows
from loaderscope.advisors.code.hot.function_code import here, hf_code, stored_code
from loaderscope.advisors.code.hot.function_kinds import FUNCTION_KINDS
from loaderscope.advisors.code.hot.kind import Hot
from loaderscope.advisors.code.hot.own_lines import OwnLine
from loaderscope.advisors.code.method import linked
from loaderscope.advisors.schema.report_model import Range
from loaderscope.profiler.store.inspection import Inspection, Part
from loaderscope.profiler.store.lanes.columns import Columns
from rule_cases import advice, case_of, ran
from rule_rows import MS, main_loop
from stack_cases import seen

CASE: Any = SimpleNamespace(dataset=None, config={}, inspection=Inspection())  # nothing is known
HOT = Hot(FUNCTION_KINDS[0], 0.5, 0.4, 0.6, "patches.py:41", "x = slow(path)")


@pytest.mark.parametrize("family", [f for f in FUNCTION_KINDS if not f.waits], ids=lambda f: f.key)
def test_every_family_has_a_remedy_with_code_that_names_the_place(family: Any) -> None:
    """What changes nothing by running says so."""
    code = family.code(CASE, HOT)
    assert "patches.py:41: x = slow(path)" in code
    assert family.title[0].isupper() and family.why.endswith(".") and family.caveat.endswith(".")
    told = told_by_hand(code)
    nodes = ast.parse(told).body
    changes = any(isinstance(node, ast.Assign | ast.Expr | ast.For) for node in nodes)
    assert changes or "by hand" in told.lower()
    assert told_by_hand(told) == told and told_by_hand("loader = 3\n") == "loader = 3\n"


def test_rows_are_stored_and_read(tmp_path: Path) -> None:
    """The code before it touches the user's data set defines what stores them."""
    path, code = str(tmp_path / "t.npy"), stored_code("tables")(CASE, HOT)
    store = ran("\n".join(x for x in code.split("\n") if not x.startswith("dataset.")))["store"]
    store(lambda n: np.full((3, 2), n, np.float32), 5, path)
    rows = np.load(path, mmap_mode="r")
    assert rows.shape == (5, 3, 2) and rows.dtype == np.float32 and rows[4].tolist() == [[4, 4]] * 3


def test_a_place_is_one_printable_line() -> None:
    assert here(replace(HOT, place="a\nimport os", text="b\u2028c\rd")).isprintable()


def test_what_was_not_seen_is_not_named(tmp_path: Path) -> None:
    rows = {"attributes": [{"name": "rows", "kind": "other", "type": "Stream"}]}
    inspection = {"dataset": {"type": "t.Rows", "name": "Rows", **rows}}
    case = case_of(tmp_path, main_loop(30, fetch=1.0), inspection=inspection)
    assert not free_names(ast.parse(hf_code(case, HOT)))


FETCH = [1.0 + 0.05 * n for n in range(100)]


def loop_of(fetch_ms: list[float], epochs: int = 1, **columns: Any) -> list[dict[str, Any]]:
    rows = main_loop(len(fetch_ms), compute_ms=0.2, fetch=4.0)
    for n, row in enumerate(rows):
        row |= {"fetch_ns": round(fetch_ms[n] * MS), "epoch": n * epochs // len(rows)}
        row |= {name: each(n) for name, each in columns.items()}
    return rows


@pytest.mark.parametrize(
    ("fetch_ms", "epochs", "grown"),
    [(FETCH, 1, (1475, 5475)), (FETCH, 4, (1475, 5475)), (FETCH[:50] * 2, 2, (1225, 3225))],
)
def test_what_grows_over_the_run_or_in_each_epoch_is_said(tmp_path, fetch_ms, epochs, grown):
    found = case_of(tmp_path, loop_of(fetch_ms, epochs))
    assert grows(found, "fetch") == pytest.approx(grown, rel=0.01)
    assert grows(found, "collate") is None


def test_what_the_loop_itself_takes_may_be_unknown(tmp_path: Path) -> None:
    found = case_of(tmp_path, loop_of(FETCH))
    columns = dict(found.loader.batches) | {"compute_ns": np.full(100, -1)}
    batches = Columns(columns, found.loader.batches.rows)
    unknown = replace(found, loader=replace(found.loader, batches=batches))
    assert grows(unknown, "fetch") == grows(found, "fetch") is not None


@pytest.mark.parametrize(
    ("fetch_ms", "columns"),
    [
        ([3.0] * 100, {}),
        (FETCH[::-1], {}),
        ([1.0] * 50 + [4.0] * 50, {}),  # another phase of training, or a busy machine
        (FETCH[:40], {}),
        (FETCH, {"bytes": lambda n: 1000 + 50 * n}),  # sorted by length
        (FETCH, {"compute_ns": lambda n: round((1 + n / 25) * MS)}),  # a slower clock
    ],
)
def test_silent_where_it_does_not_or_everything_does(tmp_path, fetch_ms, columns):
    assert grows(case_of(tmp_path, loop_of(fetch_ms, **columns)), "fetch") is None


def test_it_is_the_advice_about_the_line_that_takes_most(tmp_path: Path) -> None:
    stack, text = ("Seen.__getitem__ /home/u/train.py:41", 100), "scale = np.std(self.history)"
    found = advice("hot-function", seen(case_of(tmp_path, loop_of(FETCH)), stack, text=text))
    assert found.title.endswith("longer with each batch: " + text)
    assert "at first and" in found.why and "# By hand (train.py:41): keep only" in found.code


@pytest.mark.parametrize(
    ("made_anew", "again"), [("Pack(self.paths[index])", True), ("self", False)]
)
def test_an_object_made_for_each_sample_takes_its_changes_with_it(made_anew, again):
    getitem = "def __getitem__(self, index):", f"    pack = {made_anew}", "    return pack.all()"
    text = "return parsed(self.raw, self.at)"
    method = "def all(self):", "    self.at += 1", f"    {text}"
    by_sample, by_epoch = (linked([getitem, method], fixed)[1] for fixed in ((), ["__getitem__"]))
    part = Part(getitem=getitem, helpers=(method,))
    line = OwnLine(part, by_sample, by_epoch, text, text, None, None, Range(0.9, 0.9, 0.9))
    assert line.repeats(text) is again
