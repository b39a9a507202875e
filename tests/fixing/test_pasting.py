"""Code that advice brings along is fitted into the user's file."""

from __future__ import annotations

import ast

import pytest

from loaderscope.fixing.arguments import Arguments
from loaderscope.fixing.edits import Edits
from loaderscope.fixing.pasting import paste
from loaderscope.fixing.project import CannotPatch, Source
from loaderscope.fixing.sites import Site

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
    tree = ast.parse(after)
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    assert names == ["Batches2", "as_is", "build"]
    assert after.startswith(
        "import torch\nfrom torch.utils.data import DataLoader\nfrom torch.utils.data import Sampler\n"
    )
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
