"""Finds how many samples a data set has without calling its `__len__`, which is the user's code and
which torch may never call.

Most are a plain expression (`return len(self.paths)`, `return self.n`, `return 10_000`). It is read
from the bytecode and evaluated on attributes and values that answer without the user's code. Other
lengths are unknown.
"""

from __future__ import annotations

import dis
import operator
import types
from contextlib import suppress
from typing import Any

from ...guard.static_access import in_class, instance_vars, is_one_of, loaded, unseen

MAX_DEPTH = 8
MAX_INSTRUCTIONS = 64

_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)
# By symbol; before Python 3.11 each had an instruction of its own.
_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "[]": operator.getitem,
    "BINARY_ADD": operator.add,
    "BINARY_SUBTRACT": operator.sub,
    "BINARY_MULTIPLY": operator.mul,
    "BINARY_FLOOR_DIVIDE": operator.floordiv,
    "BINARY_SUBSCR": operator.getitem,
}
_NOTHING = (
    "RESUME",
    "CACHE",
    "NOP",
    "PRECALL",
    "PUSH_NULL",
    "COPY_FREE_VARS",
    "NOT_TAKEN",
    "EXTENDED_ARG",
)


def known_length(value: Any) -> int | None:
    """Its length, None if only its own code knows."""
    with suppress(ValueError, ArithmeticError, LookupError), unseen():
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
    """What this `__len__` returns, followed through its bytecode."""
    code, stack = method.__code__, list[Any]()
    if depth < 0 or code.co_argcount != 1 or len(code.co_code) > 16 * MAX_INSTRUCTIONS:
        raise LookupError
    names = {"len": len, "int": int, **method.__globals__}
    cells = dict(zip(code.co_freevars, method.__closure__ or (), strict=False))
    for step in dis.get_instructions(code):
        name, value = step.opname, step.argval
        if name == "RETURN_CONST":
            return value
        if name == "RETURN_VALUE":
            return stack.pop()
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            stack.append(value)
        elif name.startswith("LOAD_FAST") and value == code.co_varnames[0]:
            stack.append(owner)
        elif name == "LOAD_GLOBAL":
            stack.append(names[value])
        elif name == "LOAD_DEREF":
            stack.append(cells[value].cell_contents)
        elif name == "LOAD_ATTR":
            stack.append(_attribute(stack.pop(), value))
        elif name in ("CALL", "CALL_FUNCTION") and step.arg == 1:
            argument, function = stack.pop(), stack.pop()
            if function is len:
                argument = _length(argument, depth)
            elif function is not int or type(argument) is not int:
                raise LookupError
            stack.append(argument)
        elif name == "BINARY_OP" or name in _OPERATORS:
            right, left = stack.pop(), stack.pop()
            operation = _OPERATORS[step.argrepr if name == "BINARY_OP" else name]
            kinds = (
                (list, tuple, loaded("torch").get("Size"))
                if operation is operator.getitem
                else (int,)
            )
            if type(right) is not int or not is_one_of(type(left), kinds):
                raise LookupError
            stack.append(operation(left, right))
        elif name not in _NOTHING:
            break
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
