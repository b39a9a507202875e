"""A `__getitems__` for a class whose `__getitem__` only looks up rows."""

from __future__ import annotations

import ast

from ..advisors.code.editable import Editable

_ROWS = {"tensor": "torch.as_tensor(indices)", "ndarray": "np.asarray(indices)"}
_IMPORTS = {"tensor": "import torch", "ndarray": "import numpy as np"}


def fetch_batches(method: Editable) -> bool:
    """Give the class a `__getitems__` that looks a batch up at once. The kinds of attributes are
    "tensor" or "ndarray"; others have none."""
    file, node, plain = method.file, method.node, method.arguments
    if method.self_name is None or method.owner is None or method.method("__getitems__"):
        return False
    if node.name != "__getitem__" or len(plain) != 1:
        return False
    if file.enclosing(method.owner, ast.FunctionDef) is not None:
        return False
    body = node.body[ast.get_docstring(node) is not None :]
    match body:
        case [ast.Return(ast.expr() as value)]:
            fields = getattr(value, "elts", None) or getattr(value, "values", None) or [value]
        case _:
            return False
    columns = []
    for each in fields:
        match each:
            case ast.Subscript(ast.Attribute(ast.Name(own), name), ast.Name(index)) if (
                own == method.self_name and [index] == plain and name in method.kinds
            ):
                columns.append((name, method.kinds[name]))
            case _:
                return False
    if isinstance(value, ast.List | ast.Set):
        return False
    text = _getitems(method, value, columns)
    margin = file.margin(node)
    end = file.inserted(file.line_end(node.end_lineno or 0), f"\n\n{text}", margin)
    method.pieces.append(end)
    for kind in {kind for _, kind in columns}:
        method.add_import(_IMPORTS[kind])
    return True


def _getitems(method: Editable, value: ast.expr, columns: list[tuple[str, str]]) -> str:
    own, deep = method.self_name, method.file.indent
    used = list(dict.fromkeys(kind for _, kind in columns))
    names = {kind: "rows" if len(used) == 1 else f"{kind}_rows" for kind in used}
    lines = [f"def __getitems__({own}, indices):"]
    lines += [f"{deep}{names[kind]} = {_ROWS[kind]}" for kind in used]
    parts = ", ".join(f"{own}.{name}[{names[kind]}]" for name, kind in columns)
    match value:
        case ast.Tuple():
            lines.append(f"{deep}return list(zip({parts}))")
        case ast.Dict(keys):
            named = ", ".join(method.file.of(each) for each in keys if each is not None)
            lines.append(f"{deep}columns = zip({parts})")
            lines.append(f"{deep}return [dict(zip(({named},), row)) for row in columns]")
        case _:
            lines.append(f"{deep}return list({parts})")
    return "\n".join(lines)
