"""Tensors that a loop makes of the numbers of a row, made of the whole row at once instead.

The operations run in float64, as Python computes, and only where they give the same numbers.
"""

from __future__ import annotations

import ast
import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import add, mul, sub, truediv

from ..batched.source_literals import OPERATORS, TORCH_TYPES
from ..syntax import Replaced, expression, names, statement

_ORDERS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_RAISED = re.compile(r"(.*\.clamp\(min=[^()]*)\)")
_FOLDED = {"+": add, "-": sub, "*": mul, "/": truediv}


@dataclass(frozen=True)
class Row:
    """A list of a row's numbers, by its name in the method.

    `made` is the row as code, `width` its length. `array`: it is NumPy's. `local`: the row's own
    name, if it has one. `flat`: it has one dimension.
    """

    name: str
    made: str
    width: int
    array: bool
    local: str | None
    flat: bool


def whole_rows(method: ast.FunctionDef, rows: dict[str, Row]) -> int | None:
    """Replaces all loops over these lists of floats by operations on whole rows; how many.

    None, and the method stays as it is, if a list has any other use.
    """
    others: dict[ast.AST, ast.AST | None] = {}
    operations = len(rows)
    loops = {name: (loop, both) for name, loop, both in _appending(method)}
    for call in ast.walk(method):
        match call:
            case ast.Call(func, [given], keywords) if dtype := _dtype(func, keywords):
                both: list[ast.stmt] = []
                if isinstance(given, ast.Name) and given.id in loops:
                    given, both = loops[given.id]
                try:
                    made = _computed(given, method, rows)
                except (_Inexact, ArithmeticError):
                    continue
                if made.constant is None:
                    # Without an operation, it could be the data set's own memory.
                    copy = "" if made.operations else ", copy=True"
                    others[call] = expression(f"{made.code}.to({dtype}{copy})")
                    others |= dict.fromkeys(both)
                    operations += made.operations + 1
    inside = {node for each in others for node in ast.walk(each)}
    elsewhere = [
        node
        for node in ast.walk(method)
        if isinstance(node, ast.Name) and node.id in rows and node not in inside
    ]
    if not others or not all(isinstance(node.ctx, ast.Store) for node in elsewhere):
        return None
    for each in method.body:
        match each:
            case ast.Assign([ast.Name(name)]) if name in rows:
                made_of = f"{rows[name].made}.double()"
                if rows[name].array:  # a copy: torch warns about arrays that are read-only
                    made_of = f'torch.from_numpy({rows[name].made}.astype("float64"))'
                others[each] = statement(f"{name} = {made_of}")
    Replaced(others).visit(method)
    ast.fix_missing_locations(method)
    return operations


def _dtype(func: ast.expr, keywords: list[ast.keyword]) -> str | None:
    """The type of the tensor that this function makes of numbers; None for any other function."""
    match ast.unparse(func), [ast.unparse(each) for each in keywords]:
        case "torch.FloatTensor", []:
            return "torch.float32"
        case "torch.tensor", []:
            return "torch.get_default_dtype()"
        case "torch.tensor", [given]:
            name = given.removeprefix("dtype=torch.")
            return f"torch.{name}" if "float" in TORCH_TYPES.get(name, "") else None
    return None


def _appending(method: ast.FunctionDef) -> Iterator[tuple[str, ast.ListComp, list[ast.stmt]]]:
    """Lists that a loop appends to and that are used once, each as a comprehension."""
    counts = names(method)
    for first, then in zip(method.body, method.body[1:], strict=False):
        match first, then:
            case (
                ast.Assign([ast.Name(name)], ast.List([])),
                ast.For(
                    ast.Name(target),
                    over,
                    [ast.Expr(ast.Call(ast.Attribute(ast.Name(to), "append"), [element], []))],
                    [],
                ),
            ) if to == name and counts[name] == 3 and counts[target] == names(then)[target]:
                loop = ast.comprehension(then.target, over, [], 0)
                yield name, ast.ListComp(element, [loop]), [first, then]


class _Inexact(Exception):
    """The result may differ on a whole row."""


@dataclass(frozen=True)
class _Term:
    """What is computed of each number, as code for all, and the value of a constant."""

    code: str
    operations: int = 0
    constant: float | int | None = None


def _computed(loop: ast.expr, method: ast.FunctionDef, rows: dict[str, Row]) -> _Term:
    """What a comprehension over the numbers of one of these rows makes of them."""
    match loop:
        case ast.ListComp(element, [ast.comprehension(ast.Name(target), over, [], 0)]):
            match over, [name for name in names(element) if name in rows]:
                case ast.Name(row), [] if row in rows:
                    return _term(element, target, row)
                case ast.Call(ast.Name("range"), [end], []), [row]:
                    whole = row + _cut(end, rows[row], method.args.args[0].arg)
                    return _term(element, f"{row}[{target}]", whole)
    raise _Inexact


def _term(node: ast.expr, number: str, whole: str) -> _Term:
    """`number` is the code of one number, `whole` that of all."""

    def of(node: ast.expr) -> _Term:
        return _term(node, number, whole)

    if ast.unparse(node) == number:
        return _Term(whole)
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return _number(value)
        case ast.UnaryOp(ast.USub(), operand):
            made = of(operand)
            if made.constant is not None:
                return _number(-made.constant)
            return _Term(f"(-{made.code})", made.operations + 1)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return _arithmetic(OPERATORS[type(op)], of(left), of(right))
        case ast.Call(ast.Name(name), arguments, []):
            return _called(name, [of(each) for each in arguments])
        case ast.IfExp(ast.Compare(left, [op], [right]), body, orelse) if type(op) in _ORDERS:
            return _chosen(of(left), _ORDERS[type(op)], of(right), of(body), of(orelse))
    raise _Inexact


def _cut(end: ast.expr, row: Row, own: str) -> str:
    """The part of the row that `range(end)` reads, as a subscript."""
    match end:
        case ast.Constant(int(number)) if 0 <= number <= row.width:
            return "" if number == row.width else f"[:{number}]"
        case ast.Call(ast.Name("len"), [ast.Name(of)]) if of in (row.name, row.local):
            return ""
        case ast.Attribute(ast.Name(name)) if name == own:
            return f"[:{ast.unparse(end)}]"
    raise _Inexact


def _number(value: float) -> _Term:
    if not math.isfinite(value):  # no literal says so
        raise _Inexact
    return _Term(repr(value), constant=value)


def _arithmetic(symbol: str, left: _Term, right: _Term) -> _Term:
    if symbol == "/" and not right.constant:  # Python raises where it divides by zero
        raise _Inexact
    if left.constant is not None and right.constant is not None:
        return _number(_FOLDED[symbol](left.constant, right.constant))
    operations = left.operations + right.operations + 1
    return _Term(f"({left.code} {symbol} {right.code})", operations)


def _called(name: str, given: list[_Term]) -> _Term:
    match name, [each.constant for each in given]:
        case "float", [None]:
            return given[0]
        case "abs", [None]:
            return _Term(f"{given[0].code}.abs()", given[0].operations + 1)
        # A limit that is no float would make some numbers whole ones.
        case (("min" | "max"), [None, float(limit)]):
            of, side = given[0], "max" if name == "min" else "min"
            if side == "max" and (both := _RAISED.fullmatch(of.code)):
                return _Term(f"{both[1]}, max={limit})", of.operations)
            return _Term(f"{of.code}.clamp({side}={limit})", of.operations + 1)
        # Python's min and max give the first if the other is NaN.
        case (("min" | "max"), [float(), None]):
            first, second = given
            return _chosen(second, "<" if name == "min" else ">", first, second, first)
    raise _Inexact


def _chosen(left: _Term, symbol: str, right: _Term, yes: _Term, no: _Term) -> _Term:
    constants = [each.constant for each in (yes, no) if each.constant is not None]
    # Of two constants torch makes float32.
    if (
        None not in (left.constant, right.constant)
        or any(type(each) is not float for each in constants)
        or (len(constants) == 2 and any(ctypes.c_float(each).value != each for each in constants))
    ):
        raise _Inexact
    code = f"torch.where({left.code} {symbol} {right.code}, {yes.code}, {no.code})"
    parts = {id(each): each.operations for each in (left, right, yes, no)}
    return _Term(code, sum(parts.values()) + 2)
