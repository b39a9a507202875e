"""Constants in a method's source: subscripts, keys, dtypes. A computed one raises NotArrays."""

import ast
import math
from typing import Any

import numpy as np


class NotArrays(Exception):
    """The method does more than look up arrays; the reason, if it has one, is part of a
    sentence."""


OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_NUMPY_TYPES = ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
TORCH_TYPES = {
    **{name: name for name in (*_NUMPY_TYPES, "bfloat16", "bool")},
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
PYTHON_TYPES = {"int": "int64", "float": "float64", "bool": "bool"}


def _constant(node: ast.AST | None) -> Any:
    """The value of a literal; None where there is none."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError):
        return None


def constant_key(node: ast.expr | None) -> str | int:
    key = _constant(node)
    if type(key) not in (str, int):
        raise NotArrays
    return key  # type: ignore[no-any-return]


def constant_subscripts(node: ast.expr) -> list[ast.expr]:
    """Whole numbers and slices of such."""
    keys = node.elts if isinstance(node, ast.Tuple) else [node]
    for key in keys:
        for part in ast.iter_child_nodes(key) if isinstance(key, ast.Slice) else (key,):
            whole(part)
    return keys


def whole(node: ast.AST) -> int:
    number = _constant(node)
    if type(number) is not int or abs(number) >= 1 << 40:
        raise NotArrays
    return number


def number_text(node: ast.expr) -> str | None:
    """The text of a finite number that is written out; None for anything else."""
    number = _constant(node)
    finite = type(number) in (int, float) and math.isfinite(number) and abs(number) <= 1e18
    return repr(number) if finite else None


def plain_dtype(text: str | None) -> str | None:
    """'float32' of 'torch.float32', 'float32' or '<f4'; None unless it is of plain numbers."""
    name = (text or "").rpartition(".")[2]
    if name in TORCH_TYPES.values():
        return name
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    return found.name if name and found.kind in "fiubc" else None


def python_type(dtype: str | None) -> str | None:
    """The type of Python's numbers that `tolist()` of such an array gives: 'int' of 'uint8'."""
    return next((name for name in PYTHON_TYPES if name in (dtype or "")), None)


def named_dtype(node: ast.expr) -> str:
    """The dtype that `torch.float32`, `np.float32`, `"float32"`, `float` or `int` names."""
    match node:
        case ast.Attribute(ast.Name("torch"), name) if name in TORCH_TYPES:
            return TORCH_TYPES[name]
        case ast.Attribute(ast.Name("np" | "numpy"), name) | ast.Constant(str() as name) if (
            name in _NUMPY_TYPES
        ):
            return name
        case ast.Name("float" | "int" | "bool" as name):
            return PYTHON_TYPES[name]
    raise NotArrays
