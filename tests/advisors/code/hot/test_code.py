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
from loaderscope.advisors.code.hot.function_kinds import FUNCTION_KINDS, kind_of
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

    assert "patches.py:41: x = slow(path)" in code or family.key in ("transforms", "zarr")
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

    path = str(tmp_path / "ragged.npy")  # of any length
    defined(stored_code("tokens", ragged=True))["store"](lambda n: np.arange(n + 1), 4, path)
    values, ends = np.load(path), np.load(f"{path}.ends.npy")
    read = [values[(ends[n - 1] if n else 0) : ends[n]].tolist() for n in range(4)]
    assert read == [list(range(n + 1)) for n in range(4)]


def test_pictures_are_made_small(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    picture, small = tmp_path / "a.jpg", tmp_path / "small"
    image.new("RGB", (640, 480)).save(picture)

    defined(kind_of("jpeg-small").code)["shrink"]([picture], small, (256, 256))

    with image.open(small / "0.jpg") as made:
        assert made.size == (256, 192)


def test_a_generator_of_a_process_is_repeatable() -> None:
    make = defined(kind_of("generator").code)["generator"]

    assert make(3).random() == make(3).random() != make(4).random()


def test_an_hdf5_file_is_kept_open(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(60).reshape(20, 3)

    kept = defined(kind_of("h5-open").code)["KeptOpen"](h5py.File, tmp_path / "a.h5")

    assert kept["x"][:].tolist() == np.arange(60).reshape(20, 3).tolist()
    assert kept["x"].file == kept["x"].file
    kept.close()


def test_records_are_parsed_once() -> None:
    yaml = pytest.importorskip("yaml")
    texts = ['{"boxes": [1, 2], "n": 5}', '{"boxes": [], "n": 6}']

    columns = defined(kind_of("json").code)["convert"](texts, ["boxes", "n"])

    assert [box.tolist() for box in columns["boxes"]] == [[1, 2], []] and columns["n"] == [5, 6]
    assert defined(kind_of("yaml").code)["convert"]([yaml.safe_dump({"a": [1]})]) == ['{"a": [1]}']


def test_a_place_is_one_printable_line() -> None:
    evil = Hot(FUNCTION_KINDS[0], 0.5, 0.4, 0.6, "a\nimport os", "b\u2028c\rd", None)

    assert here(evil).isprintable()


def test_what_was_not_seen_is_not_named(tmp_path: Path) -> None:
    rows = {"attributes": [{"name": "rows", "kind": "other", "type": "Stream"}]}
    inspection = {"dataset": {"type": "t.Rows", "name": "Rows", **rows}}
    case = case_of(tmp_path, main_loop(30, fetch=1.0), inspection=inspection)
    assert not free_names(ast.parse(hf_code(case, HOT)))
