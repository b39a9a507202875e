"""Finds how many samples a data set has without calling its `__len__`, which is the user's code and
which torch may never call.

Most are a plain expression (`return len(self.paths)`, `return self.n`, `return 10_000`). It is read
from the source and evaluated on attributes and values that answer without the user's code. Other
lengths are unknown.
"""

from __future__ import annotations

import ast
import operator
import types
from typing import Any

from ...guard.error_origin import forgiving
from ...guard.static_access import in_class, instance_vars, is_one_of, loaded, unseen
from .inspect_source import source_of

MAX_DEPTH = 8

_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)
_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def known_length(value: Any) -> int | None:
    """Its length, None if only its own code knows."""
    with forgiving(ValueError, ArithmeticError, LookupError, SyntaxError), unseen():
        return _length(value, MAX_DEPTH)
    return None


def _length(value: Any, depth: int) -> int:
    """Raises LookupError or ValueError where it cannot be known."""
    cls = type(value)
    if is_one_of(cls, _SIZED):
        return len(value)
    if is_one_of(cls, _arrays()):
        return int(value.shape[0])
    if cls is loaded("datasets").get("Dataset"):
        return int(value.num_rows)
    if any(cls is loaded("pandas").get(name) for name in ("DataFrame", "Series")):
        return len(value)
    if cls is loaded("torch.utils.data").get("TensorDataset"):  # it calls a method of a tensor
        return _length(instance_vars(value)["tensors"][0], depth)
    method = in_class(cls, "__len__")
    found = _result(method, value, depth - 1) if type(method) is types.FunctionType else None
    if type(found) is not int or found < 0:
        raise LookupError
    return found


def _arrays() -> tuple[Any, ...]:
    return loaded("torch").get("Tensor"), loaded("numpy").get("ndarray")


def _result(method: types.FunctionType, owner: Any, depth: int) -> Any:
    """What this `__len__` returns, if that is all it does."""
    source = source_of(method)
    if depth < 0 or "\\" in source:  # the parser would warn of an escape that it does not know
        raise LookupError
    (function,) = ast.parse(source).body
    if type(function) is not ast.FunctionDef:
        raise LookupError
    body = function.body[ast.get_docstring(function) is not None :]
    match body, function.args.args:
        case [ast.Return(ast.expr() as returned)], [argument]:
            return _value(returned, {**method.__globals__, argument.arg: owner}, depth)
    raise LookupError


def _value(node: ast.expr, names: dict[str, Any], depth: int) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return names[name]
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
            return -number
        case ast.Attribute(inner, name):
            return _attribute(_value(inner, names, depth), name)
        case ast.Call(ast.Name("len"), [argument], []) if "len" not in names:
            return _length(_value(argument, names, depth), depth)
        case ast.Subscript(inner, index):
            held, at = _value(inner, names, depth), _value(index, names, depth)
            kinds = list, tuple, loaded("torch").get("Size")
            if type(at) is int and is_one_of(type(held), kinds):
                return held[at]
        case ast.BinOp(left, operation, right):
            both = [_value(each, names, depth) for each in (left, right)]
            if [type(each) for each in both] == [int, int]:
                return _OPERATORS[type(operation)](*both)
    raise LookupError


def _attribute(value: Any, name: str) -> Any:
    cls = type(value)
    if name == "shape" and is_one_of(cls, _arrays()):
        return value.shape
    in_type, own = in_class(cls, name), instance_vars(value)
    if in_class(cls, "__getattribute__") is not object.__getattribute__:
        raise LookupError
    if in_type is None:
        return own[name]
    if not is_one_of(type(in_type), (int, *_SIZED)):
        raise LookupError  # a property, or another descriptor
    return own.get(name, in_type)
