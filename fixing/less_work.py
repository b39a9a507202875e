"""Edits of single lines: less is read or computed for the same sample, and what is opened for each
stays open, once in each process."""

from __future__ import annotations

import ast

from ..advisors.code.collating import stacked
from ..advisors.code.editable import OPENS, Editable
from ..advisors.code.method import called, calls_in, names_of
from ..advisors.code.waste import with_of
from .edits import added_arguments
from .nodes import passed_as

# What works on every pixel, and what makes pictures smaller.
_PER_PIXEL = ("filter", "convert", "enhance", "gaussian_blur", "point", "equalize", "blur")
_SMALLER = ("resize", "thumbnail", "crop", "reduce")
# Conversions of a number: the dtype that torch makes of their results.
_TENSORS = ("torch.tensor", "torch.as_tensor")
_DTYPES = {"float": "torch.float32", "int": "torch.int64", "bool": "torch.bool"}


def map_memory(method: Editable, statement: ast.stmt) -> bool:
    """`np.load` of which a part is used reads that part alone."""
    loads = [
        each for each in calls_in(statement) if ast.unparse(each.func) in ("np.load", "numpy.load")
    ]
    if len(loads) != 1 or passed_as(loads[0], "mmap_mode") or ".npz" in ast.unparse(loads[0]):
        return False
    (load,) = loads
    used: list[ast.expr] = [load]
    match statement:
        case ast.Assign([ast.Name(name)], value) if value is load:
            used = [*method.named(name)] if method.stays(name) else []
    parts = [next(method.file.parents(each)) for each in used]
    if not parts or not all(isinstance(each, ast.Subscript) for each in parts):
        return False
    for part in parts:
        method.wrap(part, f"{ast.unparse(load.func).partition('.')[0]}.array")
    method.pieces += added_arguments(method.file, load, {"mmap_mode": '"r"'})
    return True


def make_smaller_first(method: Editable, statement: ast.stmt) -> bool:
    """`x = x.filter(…)` right before `x = x.resize(…)` changes places with it."""
    body = getattr(next(method.file.parents(statement)), "body", [])
    at = body.index(statement) + 1 if statement in body else len(body)
    name = _works_on(statement, _PER_PIXEL)
    if name is None or at >= len(body) or _works_on(body[at], _SMALLER) != name:
        return False
    file, spans = method.file, [method.file.rows(each) for each in (statement, body[at])]
    for span, (begin, end) in zip(spans, spans[::-1], strict=True):
        method.pieces.append((*span, file.text[begin:end]))
    return True


def _works_on(statement: ast.stmt, names: tuple[str, ...]) -> str | None:
    """The name in `x = x.name(…)`, or `x = name(x, …)`."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.Call() as value):
            return name if called(value).lower() in names and name in names_of(value) else None
    return None


def whole_array(method: Editable, statement: ast.stmt) -> bool:
    """`torch.tensor([float(v) for v in row])` makes the tensor of `row` itself."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(
                func,
                [
                    ast.ListComp(
                        ast.Call(ast.Name(cast), [ast.Name(each)], []),
                        [ast.comprehension(ast.Name(target), rows, [])],
                    )
                ],
                [],
            ) if each == target and cast in _DTYPES and ast.unparse(func) in _TENSORS:
                made = f"{ast.unparse(func)}({method.file.of(rows)}, dtype={_DTYPES[cast]})"
                method.replace(node, made)
                return True
    return False


def stack_samples(method: Editable, statement: ast.stmt) -> bool:
    """`torch.tensor([x.tolist() for x in samples])` and the like copy each array at once."""
    samples = [name for name in method.arguments if name != method.self_name]
    for pieces in stacked(method.file, method.node, samples[0], method.seen) if samples else ():
        method.pieces += pieces or []
    if any(new == "np.stack(" for *_, new in method.pieces):
        method.add_import("import numpy as np")
    return bool(method.pieces)


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
