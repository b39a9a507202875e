"""How many samples a data set has, without asking it: its `__len__` is the user's code, and torch
may never call it.

Most are one of a few plain expressions (`return len(self.paths)`, `return self.n`, `return
10_000`), which are read from their bytecode, and evaluated on attributes and values that answer
without code of the user's. Anything else is unknown.
"""

from __future__ import annotations

import dis
import operator
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...guard.static_access import in_class, instance_vars, is_one_of, loaded, unseen

MAX_DEPTH = 8
MAX_INSTRUCTIONS = 64

_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "BINARY_ADD": operator.add,
    "BINARY_SUBTRACT": operator.sub,
    "BINARY_MULTIPLY": operator.mul,
    "BINARY_FLOOR_DIVIDE": operator.floordiv,
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
_LOADS = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")


class _UnknownError(Exception):
    """It cannot be told without running code of the user's."""


def known_length(value: Any) -> int | None:
    """Its length; None where only its own code could tell."""
    with suppress(_UnknownError, ArithmeticError, LookupError), unseen():
        return _length(value, MAX_DEPTH)
    return None


def _length(value: Any, depth: int) -> int:
    cls = type(value)
    if is_one_of(cls, _SIZED):
        return len(value)
    if is_one_of(cls, _arrays()):
        if not value.ndim:
            raise _UnknownError
        return int(value.shape[0])
    if any(cls is loaded("pandas").get(name) for name in ("DataFrame", "Series")):
        return len(value)
    if cls is loaded("datasets").get("Dataset"):
        return int(value.num_rows)
    if cls is loaded("torch.utils.data").get(
        "TensorDataset"
    ):  # its own `__len__` calls a method of a tensor
        return _length(instance_vars(value).get("tensors", (None,))[0], depth)
    method = in_class(cls, "__len__")
    if type(method) is not types.FunctionType or depth <= 0:
        raise _UnknownError
    found = _Reading(method, value, depth - 1).result()
    if type(found) is not int or found < 0:
        raise _UnknownError
    return found


def _arrays() -> tuple[Any, ...]:
    found = (loaded("torch").get("Tensor"), loaded("numpy").get("ndarray"))
    return tuple(kind for kind in found if kind is not None)


class _Reading:
    """One `__len__`, followed through its bytecode."""

    def __init__(self, method: types.FunctionType, owner: Any, depth: int) -> None:
        self._method = method
        self._owner = owner
        self._depth = depth
        self._own: dict[str, Any] | None = None
        self._stack: list[Any] = []

    def result(self) -> Any:
        code = self._method.__code__
        if code.co_argcount != 1 or len(code.co_code) > 16 * MAX_INSTRUCTIONS:
            raise _UnknownError
        for step in dis.get_instructions(code):
            name = step.opname
            if name == "RETURN_CONST":
                return step.argval
            if name == "RETURN_VALUE":
                return self._pop()
            if name not in _NOTHING:
                self._do(name, step)
        raise _UnknownError

    def _pop(self) -> Any:
        if not self._stack:
            raise _UnknownError
        return self._stack.pop()

    def _do(self, name: str, step: dis.Instruction) -> None:
        push = self._stack.append
        if name in _LOADS:
            if step.argval != self._method.__code__.co_varnames[0]:
                raise _UnknownError
            push(self._owner)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            push(step.argval)
        elif name == "LOAD_GLOBAL":
            push(self._global(step.argval))
        elif name == "LOAD_DEREF":
            push(self._cell(step.argval))
        elif name == "LOAD_ATTR":
            push(self._attribute(self._pop(), step.argval))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
            index, held = self._pop(), self._pop()
            if (
                not is_one_of(type(held), (list, tuple, loaded("torch").get("Size")))
                or type(index) is not int
            ):
                raise _UnknownError
            push(held[index])
        elif name in ("CALL", "CALL_FUNCTION") and step.arg == 1:
            argument, function = self._pop(), self._pop()
            push(self._call(function, argument))
        elif name == "BINARY_OP" or name in _OPERATORS:
            right, left = self._pop(), self._pop()
            operation = _OPERATORS.get(step.argrepr if name == "BINARY_OP" else name)
            if operation is None or type(left) is not int or type(right) is not int:
                raise _UnknownError
            push(operation(left, right))
        else:
            raise _UnknownError

    def _global(self, name: str) -> Any:
        held = self._method.__globals__
        if name in held:
            return held[name]
        if name in ("len", "int"):
            return {"len": len, "int": int}[name]
        raise _UnknownError

    def _cell(self, name: str) -> Any:
        for free, cell in zip(
            self._method.__code__.co_freevars, self._method.__closure__ or (), strict=False
        ):
            if free == name:
                with suppress(ValueError):  # empty as yet
                    return cell.cell_contents
        raise _UnknownError

    def _attribute(self, value: Any, name: str) -> Any:
        cls = type(value)
        if name == "shape" and is_one_of(cls, _arrays()):
            return value.shape
        if not is_one_of(in_class(cls, "__getattribute__"), (object.__getattribute__,)):
            raise _UnknownError
        in_type = in_class(cls, name)
        if in_type is not None and not is_one_of(type(in_type), (int, *_SIZED)):
            raise _UnknownError  # a property, or another descriptor
        own = instance_vars(value)
        if name in own:
            return own[name]
        if in_type is None:
            raise _UnknownError
        return in_type

    def _call(self, function: Any, argument: Any) -> Any:
        if function is len:
            return _length(argument, self._depth)
        if function is int and type(argument) is int:
            return argument
        raise _UnknownError
