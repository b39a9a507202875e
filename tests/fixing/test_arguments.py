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
    before, (changed, diff) = _call(text), _patched(text, wanted)
    after = _call(changed)
    named = {each.arg: each.value for each in after.keywords}
    for name, value in wanted.items():
        at = POSITIONS.index(name)
        assert ast.unparse(after.args[at] if at < len(after.args) else named[name]) == value
    others, were = (
        [ast.dump(each) for each in node.keywords if each.arg not in wanted]
        for node in (after, before)
    )
    assert others == were and len(after.args) == len(before.args)
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
    call, project, edits = _call(text), Project(Path("/p"), {"/p/a.py": ""}), Edits()
    project._sources["a.py"] = Source("a.py", text.encode())
    place = (call.lineno, "<module>", call.end_lineno, call.col_offset, call.end_col_offset)
    change_arguments(project, edits, Making((Line("/p/a.py", *place),)), wanted)
    changes = edits.changes()
    return (changes[0].after.decode() if changes else text), unified_diff(changes)


OF_WORKERS = "prefetch_factor=2, pin_memory=True, persistent_workers=True"
ALONE = "\n    data,\n    num_workers={},  # two\n"


@pytest.mark.parametrize(
    ("given", "after"),
    [
        (f"data, num_workers=4, {OF_WORKERS}", "data, num_workers=0, pin_memory=True"),
        (ALONE.format("4,\n    prefetch_factor=2"), ALONE.format("0")),
    ],
)
def test_arguments_that_need_workers_go_with_them(given: str, after: str) -> None:
    changed, _ = _patched(f"loader = DataLoader({given})\n", {"num_workers": "0"})
    assert changed == f"loader = DataLoader({after})\n"


UNKNOWN = "what `more` of a.py:1 holds is not known; "


@pytest.mark.parametrize(
    ("given", "number", "says"),
    [
        ("num_workers=n * 2", "4", "computed at a.py:1: `n * 2`; it should come to 4"),
        ("**more", "4", f"{UNKNOWN}num_workers should come to 4"),
        ("num_workers=1, **more", "0", f"{UNKNOWN}prefetch_factor should come to nothing"),
    ],
)
def test_what_is_computed_or_held_in_a_dict_is_not_replaced(given, number, says):
    with pytest.raises(CannotPatch, match=re.escape(says)):
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
    edits, opened = Edits(), Project(tmp_path, hashes, argv)
    if project.refused:
        with pytest.raises(CannotPatch, match=re.escape(project.refused)):
            change_arguments(opened, edits, made, WANTED)
        return
    change_arguments(opened, edits, made, WANTED)
    changes = edits.changes()
    assert all(each.before.decode() == files[each.path] for each in changes)
    after = {**files, **{each.path: each.after.decode() for each in changes}}
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
    edits, site = Edits(), Site(source, calls[0])
    paste(edits, site, Arguments(None, edits, site), code)
    (change,) = edits.changes()
    return change.after.decode()


def test_classes_go_above_under_names_not_taken() -> None:
    after = pasted(USERS)
    call = "return DataLoader(rows, batch_size=None, pin_memory=PIN, sampler=Batches2(len(rows), 4)"
    assert call in after and "collate_fn=as_is, num_workers=0)" in after
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
