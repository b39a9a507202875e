"""Edits of single lines: less is read or computed for the same sample."""

from __future__ import annotations

import ast

from ..advisors.code.collating import stacked
from ..advisors.code.editable import Editable
from ..advisors.code.method import called, names_of
from .call_text import added_arguments
from .nodes import passed_as

# What works on every pixel, and what makes pictures smaller.
_PER_PIXEL = ("filter", "convert", "enhance", "gaussian_blur", "point", "equalize", "blur")
_SMALLER = ("resize", "thumbnail", "crop", "reduce")
# Conversions of a number: the dtype that torch makes of their results.
_TENSORS = ("torch.tensor", "torch.as_tensor")
_DTYPES = {"float": "torch.float32", "int": "torch.int64", "bool": "torch.bool"}


def map_memory(method: Editable, statement: ast.stmt) -> bool:
    """`np.load` of which a part is used reads that part alone."""
    calls = [each for each in ast.walk(statement) if isinstance(each, ast.Call)]
    loads = [each for each in calls if ast.unparse(each.func) in ("np.load", "numpy.load")]
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
