"""Text of code to paste, taken from the modules in `templates/`, which say how they are written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_FOLDER = Path(__file__).with_name("templates")

Value = str | int | float


def definitions(template: str, *names: str, **values: Value) -> str:
    """These top-level definitions of a template, without what they import."""
    lines, tree = _resolved(template, values)
    nodes = {name: node for node in tree.body for name in _names(node)}
    return "\n\n".join(_filled(_text(lines, nodes[name]), tree, values) for name in names)


def code_from(template: str, *names: str, then: str = "", **values: Value) -> str:
    """These definitions, and `then` what is done with them, below the imports that both of them
    need."""
    body = "\n\n".join([definitions(template, *names, **values), *([then] if then else [])])
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines, tree = _resolved(template, values)
    head: list[str] = []
    last = 0
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if node.names:
                head += [""] if head and "" in lines[last : node.lineno] else []
                head.append(ast.unparse(node))
                last = node.lineno
    gap = [""] if not body.startswith(("class ", "def ")) else ["", ""]
    return "\n".join([*head, *gap, body]) if head else body


def whole(template: str, **values: Value) -> str:
    """All of a template below its docstring, but for what it imports from others."""
    lines, tree = _resolved(template, values)
    others = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    for node in reversed([tree.body[0], *others]):
        del lines[node.lineno - 1 : (node.end_lineno or 0) + 1]  # with the empty line below it
    return _filled("\n".join(lines) + "\n", tree, values)


def _resolved(template: str, values: dict[str, Value]) -> tuple[list[str], ast.Module]:
    """Lines and syntax of a template in which each `if` about a placeholder is decided."""
    text = (_FOLDER / f"{template}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    placeholders = _placeholders(tree)
    lines: list[str | None] = list(text.splitlines())
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.If)
            and (holds := _holds(node.test, placeholders, values)) is not None
        ):
            chosen = node.body if holds else node.orelse
            kept = range(chosen[0].lineno, (chosen[-1].end_lineno or 0) + 1) if chosen else ()
            for number in range(node.lineno, (node.end_lineno or 0) + 1):
                line = lines[number - 1]
                # An `elif` is no deeper than its `if`.
                deeper = chosen[0].col_offset - node.col_offset if chosen else 0
                lines[number - 1] = line[deeper:] if line is not None and number in kept else None
    left = [line for line in lines if line is not None]
    return left, ast.parse("\n".join(left))


def _holds(test: ast.expr, placeholders: set[str], values: dict[str, Value]) -> bool | None:
    """What `if NAME` or `if NAME == "constant"` is decided to be; None where it is no matter of a
    placeholder."""
    name, expected = test, None
    if isinstance(test, ast.Compare):
        name, expected = test.left, test.comparators[0]
    if not isinstance(name, ast.Name) or name.id not in placeholders:
        return None
    value = values.get(name.id)
    return (
        bool(value)
        if expected is None
        else isinstance(expected, ast.Constant) and value == expected.value
    )


def _placeholders(tree: ast.Module) -> set[str]:
    found = (
        node.names
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "placeholders"
    )
    return {alias.name for names in found for alias in names if alias.name.isupper()}


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return (
        [t.id for t in node.targets if isinstance(t, ast.Name)]
        if isinstance(node, ast.Assign)
        else []
    )


def _text(lines: list[str], node: ast.stmt) -> str:
    return "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"


def _filled(text: str, tree: ast.Module, values: dict[str, Value]) -> str:
    """The text with the values of its placeholders. KeyError for one that has none."""
    names = "|".join(_placeholders(tree))
    return re.sub(rf"\b(?:{names})\b", lambda found: str(values[found[0]]), text) if names else text
