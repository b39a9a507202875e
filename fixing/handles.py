"""What is opened for every sample stays open, once in each process."""

from __future__ import annotations

import ast

from ..advisors.code.editable import OPENS, Editable
from ..advisors.code.method import called
from ..advisors.code.waste import with_of

_CLOSES = ("close", "release")


def keep_open(method: Editable, statement: ast.stmt) -> bool:
    """Open at first use in each process, and keep open, what this statement opens for each
    sample."""
    if method.self_name is None or method.method("__getstate__") is not None:
        return False
    match with_of(method, statement), statement:
        case (
            ast.With([ast.withitem(ast.Call() as opened, ast.Name(name))]) as around,
            _,
        ) if _opens(method, opened):
            return _keep(method, around, name, opened, around.body)
        case _, ast.Assign([ast.Name(name)], ast.Call() as opened) if _opens(method, opened):
            return method.stays(name) and _keep(method, statement, name, opened, [])
    return False


def _opens(method: Editable, call: ast.Call) -> bool:
    # A file's own position would move on from sample to sample.
    return called(call) in OPENS and ast.unparse(call.func) != "open" and method.is_same(call)


def _keep(
    method: Editable, statement: ast.stmt, name: str, opened: ast.Call, body: list[ast.stmt]
) -> bool:
    file, own = method.file, method.self_name
    attribute = method.free_name(name)
    opener = method.free_name(f"{attribute}_pid")
    words, margin = {name: f"{own}.{attribute}"}, file.margin(statement)
    text = (
        f"if {own}.{opener} != os.getpid():  # a process opens its own\n{file.indent}"
        f"{own}.{attribute}, {own}.{opener} = {file.of(opened)}, os.getpid()"
    )
    if body:
        text += f"\n{file.moved(body, words)}"
    begin, end = file.rows(statement, above=False)
    method.pieces.append((begin, end, file.indented(text, margin)))
    for node in method.named(name):
        if statement not in file.parents(node):
            method.replace(node, words[name])
    for each in method.statements:
        match each:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(held), close))):
                if held == name and close in _CLOSES:
                    method.pieces.append(file.without(each))
    _keep_state(method, attribute, opener)
    method.add_import("import os")
    return True


def _keep_state(method: Editable, attribute: str, opener: str) -> None:
    """Attributes in front of the class's first method, and a method behind its last."""
    file, owner = method.file, method.owner
    assert owner is not None
    first = next(each for each in owner.body if isinstance(each, ast.FunctionDef))
    margin, at = file.margin(first), file.rows(first)[0]
    begin = file.inserted(at, f"{attribute} = {opener} = None\n\n", margin)
    state = (
        f"\n\ndef __getstate__(self):\n{file.indent}"
        f'return {{**self.__dict__, "{attribute}": None, "{opener}": None}}'
    )
    end = file.inserted(file.line_end(owner.end_lineno or 0), state, margin)
    method.pieces += [begin, end]
