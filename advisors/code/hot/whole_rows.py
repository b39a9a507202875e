"""Tensors made of a list of numbers, each computed from one of a row: made of the whole row at
once, in float64, as Python computes, wherever that gives the very same numbers."""

from __future__ import annotations

import ast
import ctypes
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul, sub, truediv

_FLOATS = ("float", "float16", "float32", "float64", "double", "half", "bfloat16")
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Row:
    """A list of floats that a method makes of a row, which has one dimension. `made` is the row as
    code, `width` its length; `array`: it is NumPy's; `local`: the name of the row, if it has
    one."""

    made: ast.expr
    width: int
    array: bool
    local: str | None


def whole_rows(method: ast.FunctionDef, rows: Mapping[str, Row]) -> int | None:
    """Puts operations on whole rows in the place of all loops over these lists; how many. None, and
    the method stays as it is, where a list is used for anything else."""
    found = _Whole(method, rows)
    made = [(call, found.of_call(call)) for call in found.calls()]
    whole = {id(call): each for call, each in made if each is not None}
    used = sum(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in rows
        for n in ast.walk(method)
    )
    if not whole or used != sum(each.reads for each in whole.values()):
        return None
    gone = [part for each in whole.values() for part in found.loops.get(each.appended, ())]
    _Put({key: each.code for key, each in whole.items()}, gone, rows).visit(method)
    ast.fix_missing_locations(method)
    return sum(each.operations for each in whole.values()) + len(rows)


@dataclass(frozen=True)
class _Made:
    """A tensor as code, in so many operations; `reads`: how often the loop in its place names a
    list; `appended`: the list that the loop makes."""

    code: ast.expr
    operations: int
    reads: int
    appended: str


@dataclass(frozen=True)
class _Each:
    """What is computed of each number: as code for all, None of a constant. `raised`: of what is at
    least a limit, what that was made of, and the limit."""

    row: ast.expr | None
    constant: float | int | None = None
    operations: int = 0
    raised: tuple[ast.expr, float] | None = None


class _Cannot(Exception):
    """What is computed may differ on a whole row."""


class _Whole:
    def __init__(self, method: ast.FunctionDef, rows: Mapping[str, Row]) -> None:
        self.method, self.rows = method, rows
        self.own = method.args.args[0].arg
        self.loops: dict[
            str, tuple[ast.stmt, ast.For]
        ] = {}  # lists that are appended to, by their names
        for first, then in zip(method.body, method.body[1:], strict=False):
            name = _new_list(first)
            loads = [n for n in ast.walk(method) if isinstance(n, ast.Name) and n.id == name]
            if (
                name is None
                or len(loads) != 3
                or not isinstance(then, ast.For)
                or _appended(then, name) is None
            ):
                continue
            if _named(method, then.target) == _named(
                then, then.target
            ):  # what it went through is not used after it
                self.loops[name] = first, then

    def calls(self) -> Iterator[ast.Call]:
        """Where a tensor is made of one argument."""
        for node in ast.walk(self.method):
            if (
                isinstance(node, ast.Call)
                and _of_torch(node.func, "tensor", "FloatTensor")
                and len(node.args) == 1
            ):
                yield node

    def of_call(self, call: ast.Call) -> _Made | None:
        of_floats = _of_torch(call.func, "FloatTensor")
        dtype: ast.expr = (
            _torch("float32") if of_floats else ast.Call(_torch("get_default_dtype"), [], [])
        )
        if call.keywords and not of_floats:
            only = call.keywords[0]
            if len(call.keywords) > 1 or only.arg != "dtype" or not _of_torch(only.value, *_FLOATS):
                return None
            dtype = only.value
        elif call.keywords:
            return None
        try:
            element, target, over = self._loop(call.args[0])
            name, cut, reads = self._over(element, target, over)
            each = _computed(element, target, name, cut)
        except _Cannot:
            return None
        if each.row is None:
            return None
        # As it is, it could be the data set's own memory.
        made = _method(
            each.row, "to", dtype, **({} if each.operations else {"copy": ast.Constant(True)})
        )
        appended = call.args[0].id if isinstance(call.args[0], ast.Name) else ""
        return _Made(made, each.operations + 1, reads, appended)

    def _loop(self, made_of: ast.expr) -> tuple[ast.expr, str, ast.expr]:
        """(What is computed of each, the name of what goes through, what it goes through)."""
        if isinstance(made_of, ast.Name) and made_of.id in self.loops:
            loop = self.loops[made_of.id][1]
            element = _appended(loop, made_of.id)
            if element is not None and isinstance(loop.target, ast.Name):
                return element, loop.target.id, loop.iter
        if isinstance(made_of, ast.ListComp) and len(made_of.generators) == 1:
            only = made_of.generators[0]
            if isinstance(only.target, ast.Name) and not only.ifs and not only.is_async:
                return made_of.elt, only.target.id, only.iter
        raise _Cannot

    def _over(
        self, element: ast.expr, target: str, over: ast.expr
    ) -> tuple[str, ast.expr | None, int]:
        """(The list, up to where, how often it is named)."""
        named = [n.id for n in ast.walk(element) if isinstance(n, ast.Name) and n.id in self.rows]
        if isinstance(over, ast.Name) and over.id in self.rows and not named:
            return over.id, None, 1
        if len(set(named)) != 1 or not (
            isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
        ):
            raise _Cannot
        if over.func.id != "range" or len(over.args) != 1 or over.keywords:
            raise _Cannot
        name, end = named[0], over.args[0]
        row = self.rows[name]
        if isinstance(end, ast.Constant) and type(end.value) is int and 0 <= end.value <= row.width:
            return name, None if end.value == row.width else end, len(named)
        if (
            isinstance(end, ast.Call)
            and isinstance(end.func, ast.Name)
            and end.func.id == "len"
            and len(end.args) == 1
        ):
            of = end.args[0]
            if isinstance(of, ast.Name) and of.id in (name, row.local):
                return name, None, len(named) + (of.id == name)
        if (
            isinstance(end, ast.Attribute)
            and isinstance(end.value, ast.Name)
            and end.value.id == self.own
        ):
            return name, end, len(named)
        raise _Cannot


def _computed(node: ast.expr, target: str, name: str, cut: ast.expr | None) -> _Each:
    """All that is computed of a number, on the whole row. Raises _Cannot."""

    def go(part: ast.expr) -> _Each:
        return _computed(part, target, name, cut)

    if (isinstance(node, ast.Name) and node.id == target) or _element(node, target, name):
        row: ast.expr = ast.Name(name, ast.Load())
        return _Each(row if cut is None else ast.Subscript(row, ast.Slice(None, cut), ast.Load()))
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        return _Each(None, node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        of = go(node.operand)
        if of.constant is not None:
            return _Each(None, -of.constant)
        assert of.row is not None
        return _Each(ast.UnaryOp(ast.USub(), of.row), None, of.operations + 1)
    if isinstance(node, ast.BinOp):
        return _arithmetic(node.op, go(node.left), go(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _called(node.func.id, [go(each) for each in node.args])
    if (
        isinstance(node, ast.IfExp)
        and isinstance(node.test, ast.Compare)
        and len(node.test.ops) == 1
    ):
        left, right = go(node.test.left), go(node.test.comparators[0])
        if type(node.test.ops[0]) not in _ORDERS or (left.row is None and right.row is None):
            raise _Cannot
        test = ast.Compare(_code(left), [node.test.ops[0]], [_code(right)])
        return _chosen(test, go(node.body), go(node.orelse), left.operations + right.operations)
    raise _Cannot


def _element(node: ast.expr, target: str, name: str) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and isinstance(node.slice, ast.Name)
        and node.slice.id == target
    )


def _arithmetic(op: ast.operator, left: _Each, right: _Each) -> _Each:
    # Python raises where it divides by zero.
    exact = isinstance(op, ast.Add | ast.Sub | ast.Mult) or (
        isinstance(op, ast.Div) and bool(right.constant)
    )
    if not exact:
        raise _Cannot
    if left.row is None and right.row is None:
        return _Each(None, _folded(op, _number(left), _number(right)))
    return _Each(
        ast.BinOp(_code(left), op, _code(right)), None, left.operations + right.operations + 1
    )


def _folded(op: ast.operator, left: float, right: float) -> float:
    try:
        found = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}[type(op)](left, right)
    except OverflowError:
        raise _Cannot from None
    assert isinstance(found, int | float)
    if not math.isfinite(found):  # no literal says so
        raise _Cannot
    return found


def _called(name: str, given: list[_Each]) -> _Each:
    if name == "float" and len(given) == 1 and given[0].row is not None:
        return given[0]
    if name == "abs" and len(given) == 1 and given[0].row is not None:
        return _Each(_method(given[0].row, "abs"), operations=given[0].operations + 1)
    # A limit that is no float would make some numbers whole ones.
    if (
        name not in ("min", "max")
        or len(given) != 2
        or sum(type(each.constant) is float for each in given) != 1
    ):
        raise _Cannot
    first, second = given
    if first.row is not None:
        return _limited(first, name, _number(second))
    # Of a number that is none (NaN), Python's min and max give the first.
    assert second.row is not None
    better = ast.Compare(second.row, [ast.Lt() if name == "min" else ast.Gt()], [_code(first)])
    return _chosen(better, second, first, 0)


def _limited(of: _Each, name: str, limit: float) -> _Each:
    assert of.row is not None
    if name == "min" and of.raised is not None and of.raised[1] <= limit:
        return _Each(
            _method(of.raised[0], "clamp", ast.Constant(of.raised[1]), ast.Constant(limit)),
            operations=of.operations,
        )
    if name == "min":
        return _Each(
            _method(of.row, "clamp", max=ast.Constant(limit)), operations=of.operations + 1
        )
    raised = _method(of.row, "clamp", min=ast.Constant(limit))
    return _Each(raised, operations=of.operations + 1, raised=(of.row, limit))


def _method(of: ast.expr, name: str, *given: ast.expr, **named: ast.expr) -> ast.expr:
    keywords = [ast.keyword(key, value) for key, value in named.items()]
    return ast.Call(ast.Attribute(of, name, ast.Load()), list(given), keywords)


def _chosen(test: ast.expr, yes: _Each, no: _Each, operations: int) -> _Each:
    constants = [each.constant for each in (yes, no) if each.row is None]
    if any(type(each) is not float for each in constants):
        raise _Cannot
    # Of two constants torch makes float32.
    if len(constants) == 2 and any(
        ctypes.c_float(each).value != each for each in constants if each is not None
    ):
        raise _Cannot
    chosen = ast.Call(_torch("where"), [test, _code(yes), _code(no)], [])
    return _Each(chosen, None, operations + yes.operations + no.operations + 2)


def _number(each: _Each) -> float | int:
    assert each.constant is not None
    return each.constant


def _code(each: _Each) -> ast.expr:
    return each.row if each.row is not None else ast.Constant(each.constant)


def _torch(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())


def _of_torch(node: ast.expr, *names: str) -> bool:
    named = (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
    )
    return named and isinstance(node, ast.Attribute) and node.attr in names


def _new_list(statement: ast.stmt) -> str | None:
    """The name that a statement gives a new, empty list."""
    if (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
    ):
        made = statement.value
        if isinstance(made, ast.List) and not made.elts:
            return statement.targets[0].id
    return None


def _named(within: ast.AST, target: ast.expr) -> int:
    """How often a name stands there."""
    named = [n.id for n in ast.walk(within) if isinstance(n, ast.Name)]
    return named.count(target.id) if isinstance(target, ast.Name) else 0


def _appended(loop: ast.For, name: str) -> ast.expr | None:
    """What a loop that does nothing else appends to this list."""
    only = loop.body[0] if len(loop.body) == 1 and not loop.orelse else None
    call = only.value if isinstance(only, ast.Expr) else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or len(call.args) != 1
    ):
        return None
    to = call.func.value
    return (
        call.args[0]
        if call.func.attr == "append" and isinstance(to, ast.Name) and to.id == name
        else None
    )


class _Put(ast.NodeTransformer):
    """Operations in the place of loops, and rows in that of lists."""

    def __init__(
        self, made: Mapping[int, ast.expr], gone: Sequence[ast.stmt], rows: Mapping[str, Row]
    ) -> None:
        self.made, self.gone, self.rows = made, {id(each) for each in gone}, rows

    def visit(self, node: ast.AST) -> ast.AST | None:
        if id(node) in self.gone:
            return None
        if id(node) in self.made:
            return self.made[id(node)]
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id in self.rows:
            row = self.rows[target.id]
            if row.array:  # a copy: torch warns of arrays that may not be written
                doubled = _method(row.made, "astype", ast.Constant("float64"))
                return ast.Assign(node.targets, ast.Call(_torch("from_numpy"), [doubled], []))
            return ast.Assign(node.targets, _method(row.made, "double"))
        found: ast.AST | None = super().visit(node)
        return found
