"""Waste is edited by shape, only what nothing changes; what the edited code gives is the same."""

from __future__ import annotations

import ast
import gc
import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loaderscope.advisors.code.editable import Editable
from loaderscope.advisors.code.waste import leave_out, make_once
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.less_work import keep_open
from loaderscope.fixing.lines import Edit, change_fetching, change_lines, fits, statement_at
from loaderscope.fixing.project import Project, Source
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import read_inspection
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from made_projects import PROJECTS, lay, loader_of, without_loop
from switch_data import same

HEAD = "import json, os, random\n\nclass Rows:\n    def __init__(self, root):\n        self.root, self.rows = root, []\n\n"
MOVES = "\n    def move(self, x):\n        {}\n"


def edited(body: str, more: str = "", edit: Edit = make_once, head: str = HEAD) -> str | None:
    """The file after the line marked `# hot` was edited, None where that was refused."""
    text = f"{head}    def __getitem__(self, index):\n"
    text += "".join(f"        {line}\n" for line in body.splitlines()) + more
    after = edited_file(text.encode(), edit)
    return after.decode() if after is not None else None


def edited_file(data: bytes, edit: Edit) -> bytes | None:
    source = Source("a.py", data)
    text = source.text
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "# hot" in each)
    statement, edits = statement_at(source, line), Edits()
    assert statement is not None
    function = source.enclosing(statement, ast.FunctionDef)
    assert function is not None
    method = Editable(source, function)
    if not fits(edit, method, statement):
        return None
    edits.add(source, method.pieces)
    (change,) = edits.changes()
    return change.after


@pytest.mark.parametrize(
    "body",
    [
        "names = os.listdir(self.root)  # hot\nreturn names[index]",
        "names = sorted(os.listdir(self.root))  # hot\nfirst = names[0]\nreturn first, names[index]",
        "return sorted(os.listdir(self.root))[index]  # hot",
        "names = os.listdir(self.root)  # hot\nnames = names[index]\nreturn names",
        "with open(self.root) as file:\n    text = json.load(file)  # hot\nreturn text[index]",
        "root = self.root\nreturn json.loads(self.root)[index]  # hot",
    ],
)
def test_what_is_the_same_for_every_sample_is_made_in_init(body: str) -> None:
    after = edited(body)
    assert after is not None
    init, getitem = after.split("def __getitem__")
    assert "os.listdir" in init or "json.load" in init
    assert "os." not in getitem and "json." not in getitem and "self._" in getitem


NAMES = "names = os.listdir(self.root)  # hot\n"
WITH = "with open(self.root) as f:\n    "
FILE = "with h5py.File(self.root) as f:  # hot\n    return f['x'][index]"
ROWS = "x = list(map(str, self.rows))  # hot\nreturn x"


@pytest.mark.parametrize(
    ("edit", "body", "more"),
    [
        (make_once, "name = os.listdir(index)  # hot\nreturn name", ""),
        (make_once, f"{NAMES}names.sort()\nreturn names[index]", ""),
        (make_once, f"{NAMES}names[0] = 1\nreturn names", ""),
        (make_once, f"{NAMES}random.shuffle(names)\nreturn names", ""),
        (make_once, "names = os.scandir(self.root)  # hot\nreturn list(names)[index]", ""),
        (make_once, "names = map(str, self.rows)  # hot\nreturn list(names)[index]", ""),
        (make_once, "row = random.choice(self.rows)  # hot\nreturn row", ""),
        (make_once, "row = self.root.read()  # hot\nreturn row", ""),
        (make_once, "for n in range(3):\n    x = os.listdir(self.root + n)  # hot\nreturn x", ""),
        (make_once, NAMES, MOVES.format("self.root = x")),
        (make_once, ROWS, MOVES.format("self.rows.append(x)")),
        (make_once, ROWS, MOVES.format("self.rows[0] = x")),
        (make_once, NAMES, "\n\nrows = Rows(1)\nrows.root = 2\n"),
        (make_once, f"{WITH}x = f.read(index)  # hot\nreturn x", ""),
        (make_once, f"{WITH}print(f)  # hot\nreturn 1", ""),
        (make_once, "n = len(self.rows)  # hot\nreturn n", MOVES.format("self.rows += x")),
        (make_once, 'text = self.load("""a\n  b""")  # hot\nreturn text', ""),
        (leave_out, "gc.collect(); x = 1  # hot", ""),
        (leave_out, "if index: gc.collect()  # hot", ""),
        (leave_out, NAMES + "return f'{names!r}{index}'", ""),
        (keep_open, "with open(self.root) as f:  # hot\n    return f.read(index)", ""),
        (keep_open, "with h5py.File(index) as f:  # hot\n    return f['x']", ""),
        (keep_open, FILE, "\n    def __getstate__(self):\n        return {}\n"),
    ],
)
def test_what_may_differ_and_what_stands_with_something_else_stays(edit, body, more):
    assert edited(body, more, edit) is None


@pytest.mark.parametrize(
    "body", [FILE, "f = connect(self.root)  # hot\nx = f.execute('', index)\nf.close()\nreturn x"]
)
def test_a_handle_is_kept_in_each_process(body: str) -> None:
    after = edited(body, edit=keep_open)
    assert after is not None
    assert "if self._f_pid != os.getpid():" in after and ".close()" not in after
    assert '{**self.__dict__, "_f": None, "_f_pid": None}' in after
    assert after.count("import json, os, random") == 1 and "\nimport os\n" not in after


def test_without_an_init_it_is_made_at_first_use() -> None:
    after = edited(f"{NAMES}return names[index]", head="import os\n\nclass Rows(Base):\n")
    assert after is not None and after.endswith(
        '        if not hasattr(self, "_names"):\n            self._names = os.listdir(self.root)  # hot\n'
        "        return self._names[index]\n"
    )


def test_names_that_the_file_has_are_not_taken() -> None:
    after = edited(f"{NAMES}return names[index]", "\n    def _names(self):\n        pass\n")
    assert after is not None and "self._names_2 = os.listdir(self.root)" in after


def test_a_block_without_its_only_statement_passes() -> None:
    after = edited("if index:\n    # memory\n    gc.collect()  # hot\nreturn 1", edit=leave_out)
    assert after is not None
    assert after.endswith("        if index:\n            pass\n        return 1\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_other_bytes_of_the_file_stay(newline: str, encoding: str) -> None:
    before = "# coding: latin-1\n" if encoding == "latin-1" else ""
    before += (
        "class Rows:\n\tdef __init__(self):\n\t\tself.é = 'ä'\n\n\tdef __getitem__(self, index):\n"
    )
    body = "\t\t'é'; é = 1\n\t\tx = os.listdir(self.é)  # hot\n\t\treturn {'é': x}\n"
    data = (before + body).replace("\n", newline).encode(encoding)
    after = (before + body).replace("'ä'\n", "'ä'\n\t\tself._x = os.listdir(self.é)  # hot\n")
    after = after.replace("\t\tx = os.listdir(self.é)  # hot\n", "").replace("': x", "': self._x")
    assert edited_file(data, make_once) == after.replace("\n", newline).encode(encoding)


@pytest.fixture(scope="module")
def few_objects() -> None:
    """Or a program that collects garbage for each sample takes long among many tests."""
    gc.collect()
    gc.freeze()


GOLDEN = Path(__file__).with_name("golden")
OTHER_VALUES = ("picture_filtered_whole",)
NEEDS = {"searched_frame": "pandas", "picture_filtered_whole": "PIL"}


def some(loader: Any) -> list[Any]:
    """Some batches, also of a data set that has been to another process."""
    data = pickle.loads(pickle.dumps(loader.dataset))
    assert str(data[0]) == str(loader.dataset[0])
    return [batch for batch, _ in zip(loader, range(3), strict=False)]


@pytest.mark.usefixtures("few_objects")
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
