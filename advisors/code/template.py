"""Text of code to paste, taken from the modules in `templates/`, which say how they are written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ..case.code_text import free_names

_FOLDER = Path(__file__).with_name("templates")
_IMPORTS = {
    "np": "import numpy as np",
    "numpy": "import numpy",
    "torch": "import torch",
    "math": "import math",
}

Value = str | int | float


def definitions(template: str, *names: str, then: str = "", **values: Value) -> str:
    """These top-level definitions of a template and those that `then` uses, with all that they use
    in turn, without what they import."""
    lines, tree = _resolved(template, values)
    nodes: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                nodes[name] = node
    wanted: set[str] = set()
    more = {*names} | (free_names(ast.parse(then)) & nodes.keys())
    while more - wanted:
        wanted |= more
        more = free_names(ast.Module([nodes[name] for name in wanted], [])) & nodes.keys()
    chosen = [node for name, node in nodes.items() if name in wanted]
    texts = ("\n".join([*lines[node.lineno - 1 : node.end_lineno], ""]) for node in chosen)
    return "\n\n".join(_filled(text, tree, values) for text in texts)


def code_from(template: str, *names: str, then: str = "", **values: Value) -> str:
    """These definitions, and `then`, which uses them or others, below the imports they need."""
    defined = definitions(template, *names, then=then, **values)
    body = "\n\n".join(text for text in (defined, then) if text)
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    head: list[str] = []
    for node in _resolved(template, values)[1].body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            head += [ast.unparse(node)] if node.names else []
    gap = [""] if not body.startswith(("class ", "def ")) else ["", ""]
    return "\n".join([*head, *gap, body]) if head else body


def whole(template: str, **values: Value) -> str:
    """All of a template below its docstring, except for what it imports from others."""
    lines, tree = _resolved(template, values)
    others = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    for node in reversed([tree.body[0], *others]):
        del lines[node.lineno - 1 : (node.end_lineno or 0) + 1]  # with the empty line below it
    return _filled("\n".join([*lines, ""]), tree, values)


def with_imports_of(function: ast.FunctionDef) -> str | None:
    """The code of a function below the imports it needs; None if it uses names of its module."""
    used = free_names(ast.Module([function], []))
    if not used <= _IMPORTS.keys():
        return None
    imports = [line for name, line in _IMPORTS.items() if name in used]
    return "\n".join([*imports, *["\n"] * bool(imports), ast.unparse(function)])


def _resolved(template: str, values: dict[str, Value]) -> tuple[list[str], ast.Module]:
    """Lines and syntax of a template in which each `if` about a placeholder is decided."""
    text = (_FOLDER / f"{template}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    placeholders = _placeholders(tree)
    lines: list[str | None] = list(text.splitlines())
    for node in ast.walk(tree):
        match node:
            case ast.If(ast.Name(name), body, orelse) if name in placeholders:
                chosen = body if values.get(name) else orelse
            case ast.If(ast.Compare(ast.Name(name), _, [ast.Constant(expected)]), body, orelse) if (
                name in placeholders
            ):
                chosen = body if values.get(name) == expected else orelse
            case _:
                continue
        first, last = (chosen[0].lineno, chosen[-1].end_lineno or 0) if chosen else (0, -1)
        # An `elif` is no deeper than its `if`.
        deeper = chosen[0].col_offset - node.col_offset if chosen else 0
        for number in range(node.lineno, (node.end_lineno or 0) + 1):
            line = lines[number - 1]
            if line is not None:
                lines[number - 1] = line[deeper:] if first <= number <= last else None
    left = [line for line in lines if line is not None]
    return left, ast.parse("\n".join(left))


def _placeholders(tree: ast.Module) -> set[str]:
    return {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "placeholders"
        for alias in node.names
        if alias.name.isupper()
    }


def _filled(text: str, tree: ast.Module, values: dict[str, Value]) -> str:
    """The text with the values of its placeholders. KeyError for one that has none."""
    names = "|".join(_placeholders(tree))
    return re.sub(rf"\b(?:{names})\b", lambda found: str(values[found[0]]), text) if names else text
