"""Constants in a method's source: subscripts, keys, dtypes. What is computed instead raises
NotArrays."""

from __future__ import annotations

import ast

from .batch_values import NotArrays

TORCH_TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    **{
        name: name
        for name in (
            "float16",
            "bfloat16",
            "float32",
            "float64",
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "bool",
        )
    },
}
_NUMPY_TYPES = ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")


def about_type(test: ast.expr, index: set[str]) -> bool:
    """`torch.is_tensor(index)` or `isinstance(index, ...)`."""
    if not isinstance(test, ast.Call) or not test.args:
        return False
    name = test.func.attr if isinstance(test.func, ast.Attribute) else getattr(test.func, "id", "")
    first = test.args[0]
    return name in ("is_tensor", "isinstance") and isinstance(first, ast.Name) and first.id in index


def constant_key(node: ast.expr | None) -> str | int:
    if isinstance(node, ast.Constant) and type(node.value) in (str, int):
        return node.value  # type: ignore[return-value]
    raise NotArrays("a key of its dict is computed")


def constant_subscripts(node: ast.expr) -> tuple[int | slice, ...]:
    """Constant subscripts: whole numbers and slices of such."""
    if isinstance(node, ast.Tuple):
        return tuple(each for element in node.elts for each in constant_subscripts(element))
    if isinstance(node, ast.Slice):
        return (slice(whole_number(node.lower), whole_number(node.upper), whole_number(node.step)),)
    whole = whole_number(node)
    if whole is None:
        raise NotArrays("it picks from a sample by what is computed")
    return (whole,)


def whole_number(node: ast.expr | None) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if node is None:
        return None
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1 << 40:
        return sign * node.value
    raise NotArrays("it picks from a sample by what is computed")


def plain_dtype(text: str | None) -> str | None:
    """'float32' of 'torch.float32', 'float32' or '<f4'; None for what holds no plain numbers."""
    name = (text or "").rpartition(".")[2]
    if name in TORCH_TYPES.values() or name in (
        "uint16",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
    ):
        return name
    import numpy as np

    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    return found.name if name and found.kind in "fiub" else None


def named_dtype(node: ast.expr) -> str:
    """The dtype that `torch.float32`, `np.float32`, `"float32"`, `float` or `int` names. NotArrays
    for another."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id == "torch" and node.attr in TORCH_TYPES:
            return TORCH_TYPES[node.attr]
        if node.value.id in ("np", "numpy") and node.attr in _NUMPY_TYPES:
            return node.attr
    if isinstance(node, ast.Constant) and node.value in _NUMPY_TYPES:
        return str(node.value)
    if isinstance(node, ast.Name) and node.id in ("float", "int", "bool"):
        return {"float": "float64", "int": "int64", "bool": "bool"}[node.id]
    raise NotArrays("it converts to a type that is not written out")


def flat_constants(nodes: list[ast.expr]) -> tuple[int, ...]:
    if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple | ast.List):
        nodes = nodes[0].elts
    found = tuple(whole_number(node) for node in nodes)
    return tuple(n for n in found if n is not None)
