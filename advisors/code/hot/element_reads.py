"""Elements of a tensor or an array that `__getitem__` reads one by one in a loop.

They are found in its source, which is never run. Where it gives the same numbers, the method is
written anew: it reads them from a list, which is made once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from ....profiler.store.inspection import Attribute, Part
from ...case.code_text import parsed_function
from ..batched.source_literals import python_type
from ..method import repeated_calls
from ..syntax import LOOPS, Replaced, expression, looped, names, statement, without_annotations

_ARRAYS = ("tensor", "ndarray", "memmap")
# A number of a list, and a call with one, µs: min(max(x, low), high) over 45 to 156 numbers took
# 0.29 to 0.34.
NUMBER_US, CALL_US = (0.04, 0.12), (0.05, 0.15)
# A list of more is not made for a few of its elements.
MOST_IN_LIST = 100_000


@dataclass(frozen=True)
class ElementReads:
    """`lines` are the source lines, stripped, that read elements. `method` is `__getitem__` with
    lists instead, None if the numbers may have other uses."""

    attribute: Attribute
    lines: frozenset[str]
    method: ast.FunctionDef | None

    @property
    def left_us(self) -> tuple[float, float] | None:
        """What the loop over the list takes in place of a row, µs at least and at most; None if
        there is none."""
        numbers = prod((self.attribute.shape or ())[1:])
        if self.method is None or not numbers:
            return None
        loops = [node for node in ast.walk(self.method) if isinstance(node, LOOPS)]
        calls = [len(repeated_calls(loop)) for loop in loops]  # for each number
        more, costs = max(calls, default=0), zip(NUMBER_US, CALL_US, strict=True)
        least, most = (numbers * (each + more * cost) for each, cost in costs)
        return least, most


def element_reads(part: Part) -> ElementReads | None:
    """What `__getitem__` reads element by element; None if nothing, or if it is not certain."""
    method = parsed_function(part.getitem)
    if method is None or len(method.args.args) != 2:
        return None
    held = {
        a.name: a
        for a in part.attributes
        if a.kind in _ARRAYS and a.shape and a.device in (None, "cpu")
    }
    try:
        return _Source(method, held).reads(part.getitem)
    except (ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True)
class _Base:
    """What is indexed: an attribute, or a local name (`local`) of a part of it."""

    attribute: Attribute
    ndim: int
    local: str | None = None


@dataclass(frozen=True)
class _Read:
    """An element, or a row that a loop iterates over, at `node`; `numbers` are the nodes that stand
    for its numbers."""

    node: ast.AST
    base: _Base
    indices: list[ast.expr]
    numbers: list[ast.expr]


class _Row(NamedTuple):
    """A list by its name in the method, what it is made of as code, and the row's own name, if it
    has one."""

    name: str
    made: str
    local: str | None


class _Source:
    def __init__(self, method: ast.FunctionDef, held: dict[str, Attribute]) -> None:
        self.method, self.held = method, held
        self.own, self.index = (argument.arg for argument in method.args.args)
        self.nodes = list(ast.walk(method))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.names = [node for node in self.nodes if isinstance(node, ast.Name)]
        self.bound = [node.id for node in self.names if not isinstance(node.ctx, ast.Load)]
        self.locals: dict[str, _Base] = {}
        for each in method.body:
            match each:
                case ast.Assign([ast.Name(name)], value) if self.bound.count(name) == 1 and (
                    found := self.rooted(value)
                ):
                    base, indices = found
                    whole = any(isinstance(key, ast.Slice | ast.List) for key in indices)
                    if not whole and base.ndim > len(indices):
                        self.locals[name] = _Base(base.attribute, base.ndim - len(indices), name)
        self.scalars = {self.index, *self.counters()}
        self.rows: dict[str, _Row] = {}  # the lists to make, by the code of what they are made of

    def counters(self) -> Iterator[str]:
        """Names of whole numbers: of range and enumerate, and those that are added to."""
        for node in self.nodes:
            match node:
                case ast.For(target, ast.Call(ast.Name("range" | "enumerate"))) | ast.comprehension(
                    target, ast.Call(ast.Name("range" | "enumerate"))
                ):
                    first = target.elts[0] if isinstance(target, ast.Tuple) else target
                    yield from names(first)
                case ast.AugAssign(ast.Name(name)):
                    yield name

    def rooted(self, node: ast.AST) -> tuple[_Base, list[ast.expr]] | None:
        """What a chain of subscripts starts from, and all its indices."""
        match node:
            case ast.Name(name) if name in self.locals:
                return self.locals[name], []
            case ast.Attribute(ast.Name(self.own), name) if name in self.held:
                return _Base(self.held[name], len(self.held[name].shape or ())), []
            case ast.Subscript(inner, key) if found := self.rooted(inner):
                return found[0], found[1] + (key.elts if isinstance(key, ast.Tuple) else [key])
        return None

    def is_number(self, node: ast.expr) -> bool:
        """Whether an index is one number for certain: made of counters and constants."""
        return all(
            isinstance(
                each, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context
            )
            or (isinstance(each, ast.Constant) and type(each.value) is int)
            or (isinstance(each, ast.Name) and each.id in self.scalars)
            for each in ast.walk(node)
        )

    def found(self) -> Iterator[_Read]:
        """What is read in loops."""
        repeated = looped(self.method)
        for node in self.nodes:
            target, over = None, node
            if isinstance(node, ast.For | ast.comprehension):
                target, over = node.target, node.iter
            match target, over:
                case ast.Tuple([_, target]), ast.Call(ast.Name("enumerate"), [over]):
                    pass
            root = self.rooted(over)
            if root is None or not all(map(self.is_number, root[1])):
                continue
            left = root[0].ndim - len(root[1])
            numbers: list[ast.expr] = []
            if isinstance(target, ast.Name) and left == 1:
                loop = node if isinstance(node, ast.For) else self.parents[node]
                inside = {*ast.walk(loop)}
                numbers = [
                    name
                    for name in self.names
                    if name.id == target.id and name in inside and isinstance(name.ctx, ast.Load)
                ]
            elif isinstance(node, ast.Subscript) and left == 0 and node in repeated:
                numbers = [node] if not isinstance(self.parents[node], ast.Subscript) else []
            if numbers:
                yield _Read(over, *root, numbers)

    def number(self, node: ast.AST) -> ast.Call | None:
        """The call that makes a number of Python's of this node."""
        outer = self.parents[node]
        match outer, self.parents.get(outer):
            case ast.Call(ast.Name("float" | "int" | "bool"), [only], []), _ if only is node:
                return outer if isinstance(outer, ast.Call) else None
            case ast.Attribute(_, "item" | "tolist"), ast.Call(_, []) as call:
                return call
        return None

    def reads(self, source: tuple[str, ...]) -> ElementReads | None:
        reads = list(self.found())
        if not reads:
            return None
        attribute = reads[0].base.attribute
        places = [node for each in reads for node in each.numbers]
        lines = frozenset(source[node.lineno - 1].strip() for node in places)
        taken = any(n.id.endswith("_values") or n.id in ("super", "__class__") for n in self.names)
        types = {python_type(each.base.attribute.dtype) for each in reads}
        number = types.pop() if len(types) == 1 else None
        others: dict[ast.AST, ast.AST | None] = {}
        for each in reads:
            listed = self.listed(each.base, each.indices)
            if listed is None or taken or self.written() or self.method.decorator_list:
                return ElementReads(attribute, lines, None)
            others[each.node] = listed
            for node in each.numbers:
                call = self.number(node)
                if call is None:
                    return ElementReads(attribute, lines, None)
                if isinstance(call.func, ast.Attribute) or ast.unparse(call.func) == number:
                    others[call] = others.get(node, node)
        return ElementReads(attribute, lines, self.rewritten(others))

    def written(self) -> bool:
        return self.index in self.bound or any(
            isinstance(node, ast.Subscript)
            and not isinstance(node.ctx, ast.Load)
            and self.rooted(node)
            for node in self.nodes
        )

    def listed(self, base: _Base, indices: list[ast.expr]) -> ast.expr | None:
        """The same of a list; None if it cannot be made before the loop."""
        attribute, shape = base.attribute, base.attribute.shape or ()
        made, rest = base.local, indices
        if made is None:
            if len(shape) < 2 or not indices or not names(indices[0]).keys() <= {self.index}:
                return None
            made = f"{self.own}.{attribute.name}[{ast.unparse(indices[0])}]"
            rest = indices[1:]
        left = shape[len(shape) - base.ndim :] if base.local else shape[1:]
        if prod(left) > MOST_IN_LIST:
            return None
        row = self.rows.get(made)
        if row is None:
            name = f"{(base.local or attribute.name).strip('_')}_values{len(self.rows) or ''}"
            row = self.rows[made] = _Row(name, made, base.local)
        return expression(row.name + "".join(f"[{ast.unparse(each)}]" for each in rest))

    def rewritten(self, others: dict[ast.AST, ast.AST | None]) -> ast.FunctionDef:
        method = self.method
        Replaced(others).generic_visit(method)
        body: list[ast.stmt] = []
        for each in method.body:
            body.append(each)
            match each:
                case ast.Assign([ast.Name(name)]) if name in self.rows:
                    body.append(_list(self.rows[name]))
        first = 0 if ast.get_docstring(method) is None else 1
        body[first:first] = [_list(row) for row in self.rows.values() if row.local is None]
        method.body = body
        return ast.fix_missing_locations(without_annotations(method))


def _list(row: _Row) -> ast.stmt:
    return statement(f"{row.name} = {row.made}.tolist()")
