"""Whatever form a call has: only the named arguments differ, the rest is byte for byte what it was.
Code that advice brings along is fitted in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaderscope.advisors.code.loader_code import POSITIONS
from loaderscope.fixing.deciding_call import Arguments, change_arguments
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.nodes import Site
from loaderscope.fixing.pasting import paste
from loaderscope.fixing.project import CannotPatch, Project, Source
from loaderscope.profiler.store.making import Line, Making
from made_projects import PROJECTS, lay, made_in, without_loop

NAMES = ("batch_size", "shuffle", "num_workers", "pin_memory", "drop_last", "timeout")
VALUES = st.sampled_from(("0", "1", "4", "True", "None", "1.5", "-1"))
EXPRESSIONS = st.sampled_from(("data[1:]", "make(1, b=2)", "[x for x in y]", "lambda: 0", "f(*a)"))
CALLEES = st.sampled_from(("DataLoader", "tud.DataLoader", "DL", "torch.utils.data.DataLoader"))
SPACES = st.sampled_from(("", " "))
BREAKS = st.sampled_from((" ", "\n    ", "  # why\n    ", "\n\n    # above\n    ", ""))


@st.composite
def calls(draw: st.DrawFn) -> str:
    """A call of DataLoader as people write it, in a file of some lines."""
    plain = draw(st.integers(1, 3))
    arguments = [draw(EXPRESSIONS), *(draw(VALUES) for _ in range(plain - 1))]
    for name in draw(st.permutations(NAMES)):
        if name not in POSITIONS[:plain] and draw(st.booleans()):
            equal = f"{draw(SPACES)}={draw(SPACES)}"
            arguments.append(f"{name}{equal}{draw(VALUES)}")
    text = draw(BREAKS)
    for number, argument in enumerate(arguments):
        last = number + 1 == len(arguments)
        text += argument + ("," if not last or draw(st.booleans()) else "") + draw(BREAKS)
    callee = draw(CALLEES)
    end = draw(st.sampled_from(("\n", "  # made\n", ".dataset\n", "")))
    newline = draw(st.sampled_from(("\n", "\r\n")))
    return f"x = 1\nloader = {callee}({text}){end}".replace("\n", newline)


CHANGES = st.dictionaries(st.sampled_from(NAMES[2:]), VALUES, min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(calls(), CHANGES.filter(lambda wanted: wanted.get("num_workers") != "0"))
def test_only_the_named_arguments_differ(text: str, wanted: dict[str, str]) -> None:
    before = _call(text)
    changed, diff = _patched(text, wanted)
    after = _call(changed)
    for node in (before, after):
        named = {each.arg: ast.dump(each.value) for each in node.keywords}
        node.args += [ast.Name("end")]
        for name, value in wanted.items():
            if node is after:
                at = POSITIONS.index(name)
                given_plainly = at < len(node.args) - 1
                said = ast.dump(node.args[at]) if given_plainly else named[name]
                assert said == ast.dump(ast.parse(value, mode="eval").body)
    others, were = (
        [ast.dump(each) for each in node.keywords if each.arg not in wanted]
        for node in (after, before)
    )
    assert others == were
    assert len(after.args) == len(before.args)
    # Outside of the call not a byte differs; nor does a comment.
    begin, end = text.index("loader ="), text.rindex(")")
    assert changed[:begin] == text[:begin] and changed.endswith(text[end:])
    assert changed.count("# why") == text.count("# why")
    other = "\n" if "\r\n" in text else "\r"
    assert other not in changed.replace("\r\n" if other == "\n" else "", "")
    assert (diff == "") is (changed == text)


def _call(text: str) -> ast.Call:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return next(node for node in nodes if ast.unparse(node.func).endswith(("DataLoader", "DL")))


def _patched(text: str, wanted: dict[str, str]) -> tuple[str, str]:
    """The file after the patch, and the diff; the file itself is never read."""
    call = _call(text)
    project = _Held(text)
    place = (call.lineno, "<module>", call.end_lineno, call.col_offset, call.end_col_offset)
    line, edits = Line("/p/a.py", *place), Edits()
    change_arguments(project, edits, Making((line,)), wanted)
    changes = edits.changes()
    return (changes[0].after.decode() if changes else text), unified_diff(changes)


class _Held(Project):
    """A project of one file in memory."""

    def __init__(self, text: str) -> None:
        super().__init__(Path("/p"), {"/p/a.py": ""})
        self.held = Source("a.py", text.encode())

    def source(self, file: str) -> Source:
        return self.held


@pytest.mark.parametrize(
    ("given", "after"),
    [
        (
            "data, num_workers=4, prefetch_factor=2, pin_memory=True",
            "data, num_workers=0, pin_memory=True",
        ),
        ("data, num_workers=4, prefetch_factor=2, persistent_workers=True", "data, num_workers=0"),
        (
            "\n    data,\n    num_workers=4,\n    prefetch_factor=2,  # two\n",
            "\n    data,\n    num_workers=0,  # two\n",
        ),
    ],
)
def test_arguments_that_need_workers_go_with_them(given: str, after: str) -> None:
    changed, _ = _patched(f"loader = DataLoader({given})\n", {"num_workers": "0"})
    assert changed == f"loader = DataLoader({after})\n"


def test_an_expression_of_options_is_not_replaced() -> None:
    with pytest.raises(CannotPatch, match=r"computed at a.py:1: `n \* 2`; it should come to 4"):
        _patched("loader = DataLoader(data, num_workers=n * 2)\n", {"num_workers": "4"})


@pytest.mark.parametrize(
    ("given", "number", "says"),
    [
        ("**more", "4", "num_workers should come to 4"),
        ("num_workers=1, **more", "0", "prefetch_factor should come to nothing"),
    ],
)
def test_a_call_with_a_dict_is_not_edited(given: str, number: str, says: str) -> None:
    with pytest.raises(CannotPatch, match=f"what `more` of a.py:1 holds is not known; {says}"):
        _patched(f"loader = DataLoader(data, {given})\n", {"num_workers": number})


WANTED = {"num_workers": "8", "persistent_workers": "True"}
OF_CALLS = [name for name, each in PROJECTS.items() if each.advice == "num-workers"]


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
@pytest.mark.parametrize("name", OF_CALLS)
def test_the_patch_is_the_one_an_engineer_would_write(name: str, tmp_path: Path) -> None:
    project = PROJECTS[name]
    for module in project.needs:
        pytest.importorskip(module)
    files = without_loop(project.files)
    hashes = lay(tmp_path, files)
    made, argv = made_in(tmp_path, project.arguments), ("train.py", *project.arguments)
    edits = Edits()
    opened = Project(tmp_path, hashes, argv)
    if project.refused:
        with pytest.raises(CannotPatch, match=re.escape(project.refused)):
            change_arguments(opened, edits, made, WANTED)
        return
    change_arguments(opened, edits, made, WANTED)
    after = dict(files)
    for change in edits.changes():
        assert change.before.decode() == files[change.path]
        after[change.path] = change.after.decode()
    assert after == without_loop(project.patched())
    lay(tmp_path, after)
    made_in(tmp_path, project.arguments)  # and torch takes it


CODE = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler


class Batches(Sampler):
    def __init__(self, count, size):
        self.rows = torch.arange(count).split(size)

    def __iter__(self):
        return iter(self.rows)


def as_is(batch):
    return batch


# yours, as in your own call: generator
loader = DataLoader(
    dataset, batch_size=None, sampler=Batches(len(dataset), 4), collate_fn=as_is, num_workers=0, pin_memory=True
)
"""
USERS = """\
import torch
from torch.utils.data import DataLoader


def build(rows):
    return DataLoader(rows, batch_size=4, shuffle=True, pin_memory=PIN)


# the sets
PIN, Batches = False, None
"""


def pasted(text: str, code: str = CODE) -> str:
    source = Source("a.py", text.encode())
    calls = [node for node in source.find(ast.Call) if "Loader" in source.shown(node.func)]
    edits, project = Edits(), None
    site = Site(source, calls[0])
    paste(edits, site, Arguments(project, edits, site), code)  # type: ignore[arg-type]
    (change,) = edits.changes()
    return change.after.decode()


def test_classes_go_above_under_names_not_taken() -> None:
    after = pasted(USERS)
    call = "DataLoader(rows, batch_size=None, pin_memory=PIN, sampler=Batches2(len(rows), 4)"
    assert f"return {call}" in after
    assert "collate_fn=as_is, num_workers=0)" in after
    names = [getattr(node, "name", None) for node in ast.parse(after).body]
    assert [*filter(None, names)] == ["Batches2", "as_is", "build"]
    imports = [f"from torch.utils.data import {name}\n" for name in ("DataLoader", "Sampler")]
    assert after.startswith("import torch\n" + "".join(imports))
    assert after.endswith("\n\n# the sets\nPIN, Batches = False, None\n")
    assert "\n\n\nclass Batches2(Sampler):\n" in after and "\n\n\ndef build(rows):\n" in after
    # The file's indent is taken.
    narrow = pasted(USERS.replace("    return", "  return"))
    assert "\n  def __init__(self, count, size):\n    self.rows" in narrow


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (USERS, "x = 1\n"),
        (USERS, "# By hand: change it\n"),
        (USERS, CODE.replace("def as_is", "print(1)\n\n\ndef as_is")),
        (USERS.replace("(rows, b", "(make(rows), b"), CODE),
        (USERS, CODE.replace("len(dataset)", "generator")),
    ],
)
def test_what_does_not_fit_is_refused(text: str, code: str) -> None:
    with pytest.raises(CannotPatch, match="fitted in by hand"):
        pasted(text, code)
