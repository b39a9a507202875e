"""Text of code to paste, taken from the modules in `templates/`, which say how they are written."""

import ast
import re
from pathlib import Path

from ..case.code_text import free_names

_FOLDER = Path(__file__).with_name("templates")


def definitions(template: str, *names: str, then: str = "", **values: str) -> str:
    """These top-level definitions of a template and those that `then` uses, with all that they use
    in turn, without what they import."""
    text, tree = _read(template)
    nodes = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    wanted: set[str] = set()
    more = {*names} | (free_names(ast.parse(then)) & nodes.keys())
    while more - wanted:
        wanted |= more
        more = free_names(ast.Module([nodes[name] for name in wanted], [])) & nodes.keys()
    lines = text.splitlines()
    chosen = [node for name, node in nodes.items() if name in wanted]
    texts = ("\n".join([*lines[node.lineno - 1 : node.end_lineno], ""]) for node in chosen)
    return _filled("\n\n".join(texts), values)


def code_from(template: str, *names: str, then: str = "", **values: str) -> str:
    """These definitions, and `then`, which uses them or others, below the imports they need."""
    defined = definitions(template, *names, then=then, **values)
    body = "\n\n".join(text for text in (defined, then) if text)
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    head: list[str] = []
    for node in _read(template)[1].body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            head += [ast.unparse(node)] if node.names else []
    gap = [""] if not body.startswith(("class ", "def ")) else ["", ""]
    return "\n".join([*head, *gap, body]) if head else body


def whole(template: str, **values: str) -> str:
    """All of a template below its docstring, except for what it imports from others."""
    text, tree = _read(template)
    lines = text.splitlines()
    others = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    for node in reversed([tree.body[0], *others]):
        del lines[node.lineno - 1 : (node.end_lineno or 0) + 1]  # with the empty line below it
    return _filled("\n".join([*lines, ""]), values)


def _read(template: str) -> tuple[str, ast.Module]:
    text = (_FOLDER / f"{template}.py").read_text(encoding="utf-8")
    return text, ast.parse(text)


def _filled(text: str, values: dict[str, str]) -> str:
    """The text with these in place of its placeholders. The line of one that is empty goes."""
    for name, value in values.items():
        if not value:
            text = re.sub(rf".*{name}.*\n", "", text)
        text = text.replace(name, value)
    return text
