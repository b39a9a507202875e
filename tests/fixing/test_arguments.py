"""Whatever form a call has: only the named arguments differ, the rest is byte for byte what it was."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaderscope.advisors.code.loader_code import POSITIONS
from loaderscope.fixing.deciding_call import change_arguments, change_dispatching
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.project import CannotPatch, Project
from loaderscope.profiler.store.making import Line, Making
from made_projects import PROJECTS, lay, made_in, without_loop

NAMES = ("batch_size", "shuffle", "num_workers", "pin_memory", "drop_last", "timeout")
VALUES = st.sampled_from(("0", "1", "4", "True", "None", "1.5", "-1"))
EXPRESSIONS = st.sampled_from(("data[1:]", "make(1, b=2)", "[x for x in y]", "lambda: 0", "f(*a)"))
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
    callee = draw(
        st.sampled_from(("DataLoader", "tud.DataLoader", "DL", "torch.utils.data.DataLoader"))
    )
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
    others = [each for each in after.keywords if each.arg not in wanted]
    assert [ast.dump(each) for each in others] == [
        ast.dump(each) for each in before.keywords if each.arg not in wanted
    ]
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
    line = Line(
        "/p/a.py", call.lineno, "<module>", call.end_lineno, call.col_offset, call.end_col_offset
    )
    edits = Edits()
    change_arguments(project, edits, Making((line,)), wanted)
    changes = edits.changes()
    return (changes[0].after.decode() if changes else text), unified_diff(changes)


class _Held(Project):
    """A project of one file in memory."""

    def __init__(self, text: str) -> None:
        digest = hashlib.sha256(text.encode()).hexdigest()
        super().__init__(Path("/p"), {"/p/a.py": digest}, cells={"/p/a.py": ("a.py", text)})


def test_arguments_that_need_workers_go_with_them() -> None:
    text = "loader = DataLoader(data, num_workers=4, prefetch_factor=2, pin_memory=True)\n"
    changed, _ = _patched(text, {"num_workers": "0"})
    assert changed == "loader = DataLoader(data, num_workers=0, pin_memory=True)\n"
    both = text.replace("pin_memory", "persistent_workers")
    assert _patched(both, {"num_workers": "0"})[0] == "loader = DataLoader(data, num_workers=0)\n"
    last = "loader = DataLoader(\n    data,\n    num_workers=4,\n    prefetch_factor=2,  # two\n)\n"
    assert _patched(last, {"num_workers": "0"})[0] == (
        "loader = DataLoader(\n    data,\n    num_workers=0,  # two\n)\n"
    )


def test_an_expression_of_options_is_not_replaced() -> None:
    with pytest.raises(CannotPatch, match=r"computed at a.py:1: `n \* 2`; it should come to 4"):
        _patched("loader = DataLoader(data, num_workers=n * 2)\n", {"num_workers": "4"})


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "from accelerate import Accelerator\naccelerator = Accelerator(cpu=True)\n",
            "from accelerate import Accelerator\nimport accelerate.utils\n"
            "accelerator = Accelerator(cpu=True, "
            "dataloader_config=accelerate.utils.DataLoaderConfiguration(dispatch_batches=False))\n",
        ),
        (
            "config = DataLoaderConfiguration(dispatch_batches=True)\na = Accelerator(config)\n",
            "config = DataLoaderConfiguration(dispatch_batches=False)\na = Accelerator(config)\n",
        ),
    ],
)
def test_accelerates_dispatcher_is_turned_off(text: str, after: str) -> None:
    edits = Edits()
    change_dispatching(_Held(text), edits)
    (change,) = edits.changes()
    assert change.after.decode() == after


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
        with pytest.raises(
            CannotPatch, match=project.refused.replace("(", r"\(").replace(")", r"\)")
        ):
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
