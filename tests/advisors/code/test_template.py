"""Text taken from templates: only what is chosen, with what it imports and no placeholder left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from loaderscope.advisors.code import template, templates
from loaderscope.advisors.code.template import code_from, definitions, whole
from loaderscope.advisors.code.templates import placeholders

FILES = sorted(
    path
    for path in Path(templates.__path__[0]).glob("*.py")
    if path.stem not in ("__init__", "placeholders")
)


def test_imports_are_those_that_are_used() -> None:
    code = code_from("once", "convert", BACKEND="yaml", then="torch.save(convert(texts))\n")
    assert code.startswith('import json\nimport yaml\n\n\ndef convert(texts):\n    """')
    assert code.endswith(" for text in texts]\n\n\ntorch.save(convert(texts))\n")
    assert code_from("once", "shrink").startswith(
        "import os\nfrom PIL import Image\n\n\ndef shrink("
    )
    assert code_from("samplers", "endless").startswith("def endless(loader):")
    # A line that is not chosen leaves no gap.
    plain, rewound = (definitions("kept", "Handle", REWIND=value) for value in (False, True))
    assert "        self.handle = handle\n\n    def __enter__" in plain
    assert "        handle.seek(0)  # as if it had just been opened\n\n    def __enter__" in rewound
    with pytest.raises(KeyError, match="ORDER"):
        definitions("samplers", "draw")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("value", "return torch.cat(pieces).index_select(0, back)"),
        ("list", "return [torch.cat(column).index_select(0, back) for column in zip(*pieces)]"),
        ("dict", "key: torch.cat([piece[key] for piece in pieces]).index_select(0, back)"),
    ],
)
def test_an_if_about_a_placeholder_is_decided(kind: str, line: str) -> None:
    text = definitions("batches", "Joined", KIND=kind)
    assert line in text.partition("        back = order.argsort()\n")[2]
    assert text.count("return ") == 2  # the other is that of __len__


def test_all_of_a_template_is_its_text_below_the_docstring() -> None:
    code = whole("threads", OWN_INIT="", LOADER="loader = mine", DATASET="Rows")
    assert code.startswith("import os\nimport sys\n\nfor name in (")
    assert "from torch.utils.data import DataLoader\n\ntry:\n" in code
    assert code.endswith("setNumThreads(0)\n\n\nloader = mine  # data set: Rows\n")
    assert "\n    seed(worker_id)  # yours, as before\n" in whole(
        "threads", OWN_INIT="seed", LOADER="", DATASET=""
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_placeholder_is_declared(path: Path) -> None:
    """Else it would be pasted as it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    declared = {*vars(placeholders), *placeholders.__annotations__}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {node.id for node in nodes if node.id in declared and node.id.isupper()}
    assert used <= template._placeholders(tree) <= declared
