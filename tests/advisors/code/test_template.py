"""Text taken from templates: only what is chosen, with what it imports and no placeholder left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from loaderscope.advisors.code import templates
from loaderscope.advisors.code.templates import placeholders

FILES = sorted(
    path
    for path in Path(templates.__path__[0]).glob("*.py")
    if path.stem not in ("__init__", "placeholders")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_placeholder_is_declared(path: Path) -> None:
    """Else it would be pasted as it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    declared = {*vars(placeholders), *placeholders.__annotations__}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {node.id for node in nodes if node.id in declared and node.id.isupper()}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    assert used <= {each.name for node in imports for each in node.names} <= declared
