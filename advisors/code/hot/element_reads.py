"""Elements of a tensor or an array that `__getitem__` reads one by one in a loop: found in its
source, and read from a list made once instead, wherever that gives the very same numbers. Nothing
of the source is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from ....profiler.store.inspection import Attribute, Part
from ...case.code_text import parsed_function
from .whole_rows import Row, whole_rows

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ARRAYS = ("tensor", "ndarray", "memmap")
_NUMBERS = ("float", "int", "bool")
# A number of a list, and a call with one, µs: min(max(x, low), high) over 45 to 156 numbers took
# 0.29 to 0.34.
NUMBER_US, CALL_US = (0.04, 0.12), (0.05, 0.15)
# An operation on a whole row, and a number in it, µs: rows of 20 to 400 numbers took 1.5 to 1.9 an
# operation, of 5,000 2.3 to 2.8, again and again; with other work in between, which empties the
# caches, it is more.
OPERATION_US, IN_ROW_US = (1.8, 5.0), (0.0002, 0.002)
# A list of more is not made for a few of its elements.
MOST_IN_LIST = 100_000


@dataclass(frozen=True)
class ElementReads:
    """`lines` are the source lines, stripped, in which elements are read; `method` is `__getitem__`
    with lists in their place, None where only a person can tell what else the numbers are used for.
    `operations`: so many on whole rows have taken the place of loops and lists."""

    attribute: Attribute
    lines: frozenset[str]
    method: ast.FunctionDef | None
    operations: int | None = None

    @property
    def left_us(self) -> tuple[float, float] | None:
        """What going through the list in place of a row takes, µs at least and at most: its
        numbers, and what is called with each; or the operations on the whole row. None where there
        is neither."""
        numbers = prod((self.attribute.shape or ())[1:])
        if self.method is None or not numbers:
            return None
        if self.operations is not None:
            least, most = (
                self.operations * (a + numbers * b)
                for a, b in zip(OPERATION_US, IN_ROW_US, strict=True)
            )
            return least, most
        calls = max(
            (_calls(node) for node in ast.walk(self.method) if isinstance(node, _LOOPS)), default=0
        )
        return numbers * (NUMBER_US[0] + CALL_US[0] * calls), numbers * (
            NUMBER_US[1] + CALL_US[1] * calls
        )


def element_reads(part: Part) -> ElementReads | None:
    """What `__getitem__` reads element by element; None where it reads nothing so, or it cannot be
    told."""
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


@dataclass
class _Base:
    """What is indexed: `self.values` (`local` None), or a local name that stands for a part of
    it."""

    attribute: Attribute
    ndim: int
    local: str | None = None


@dataclass
class _Lists:
    """The lists to be made: code by the name that each gets."""

    first: dict[str, ast.expr] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)  # by the local that it is made of
    of: dict[str, _Base] = field(default_factory=dict)  # by the list's name


class _Source:
    def __init__(self, method: ast.FunctionDef, held: dict[str, Attribute]) -> None:
        self.method, self.held = method, held
        self.own, self.index = (argument.arg for argument in method.args.args)
        self.parents = {
            child: node for node in ast.walk(method) for child in ast.iter_child_nodes(node)
        }
        self.bound = [
            n.id
            for n in ast.walk(method)
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        ]
        self.locals: dict[str, _Base] = {}
        for statement in method.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, found = statement.targets[0], self.rooted(statement.value)
                if (
                    isinstance(target, ast.Name)
                    and found is not None
                    and self.bound.count(target.id) == 1
                ):
                    base, left = found[0], found[0].ndim - len(found[1])
                    if left >= 1:
                        self.locals[target.id] = _Base(base.attribute, left, target.id)
        self.scalars = {self.index, *self.counters()}

    def counters(self) -> Iterator[str]:
        """Names that count: of range and enumerate, and those that are set to whole numbers and
        added to."""
        for node in ast.walk(self.method):
            if isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Call):
                called = node.iter.func.id if isinstance(node.iter.func, ast.Name) else ""
                target = node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target
                if called in ("range", "enumerate") and isinstance(target, ast.Name):
                    yield target.id
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                yield node.target.id

    def rooted(self, node: ast.AST) -> tuple[_Base, list[ast.expr]] | None:
        """What a chain of subscripts starts from, and all its indices."""
        indices: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            indices[:0] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            node = node.value
        if any(isinstance(each, ast.Slice | ast.List | ast.Starred) for each in indices):
            return None
        if isinstance(node, ast.Name) and node.id in self.locals:
            return self.locals[node.id], indices
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.own
        ):
            found = self.held.get(node.attr)
            return (_Base(found, len(found.shape or ())), indices) if found is not None else None
        return None

    def is_number(self, node: ast.expr) -> bool:
        """Whether an index is surely one number: made of counters and constants."""
        return all(
            isinstance(
                each, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context
            )
            or (isinstance(each, ast.Constant) and type(each.value) is int)
            or (isinstance(each, ast.Name) and each.id in self.scalars)
            for each in ast.walk(node)
        )

    def in_loop(self, node: ast.AST) -> bool:
        inner = node
        while (outer := self.parents.get(inner)) is not None:
            # What a loop goes over is evaluated once.
            if isinstance(outer, _LOOPS) and not (
                isinstance(outer, ast.For) and inner is outer.iter
            ):
                return True
            inner = outer
        return False

    def elements(self) -> Iterator[tuple[ast.Subscript, _Base, list[ast.expr]]]:
        for node in ast.walk(self.method):
            if isinstance(node, ast.Subscript) and not isinstance(
                self.parents.get(node), ast.Subscript
            ):
                found = self.rooted(node)
                element = (
                    found is not None
                    and len(found[1]) == found[0].ndim
                    and all(map(self.is_number, found[1]))
                )
                if found is not None and element and self.in_loop(node):
                    yield node, *found

    def iterated(
        self,
    ) -> Iterator[tuple[ast.For | ast.comprehension, ast.expr, str, _Base, list[ast.expr]]]:
        """Loops over the numbers of a row: (loop, the row, the name of a number, …)."""
        for node in ast.walk(self.method):
            if isinstance(node, ast.For | ast.comprehension):
                over, target = node.iter, node.target
                if (
                    isinstance(over, ast.Call)
                    and isinstance(over.func, ast.Name)
                    and over.func.id == "enumerate"
                ):
                    over = over.args[0] if len(over.args) == 1 else over
                    target = (
                        target.elts[1]
                        if isinstance(target, ast.Tuple) and len(target.elts) == 2
                        else target
                    )
                found = self.rooted(over)
                if (
                    found is None
                    or not isinstance(target, ast.Name)
                    or not all(map(self.is_number, found[1]))
                ):
                    continue
                if found[0].ndim - len(found[1]) == 1:
                    yield node, over, target.id, *found

    def wrapped(self, node: ast.AST) -> bool:
        """Whether a number of Python's is made of it on the spot, in whatever way."""
        outer = self.parents.get(node)
        if isinstance(outer, ast.Attribute) and outer.attr in ("item", "tolist"):
            call = self.parents.get(outer)
            return isinstance(call, ast.Call) and not call.args
        called = (
            outer.func
            if isinstance(outer, ast.Call) and outer.args == [node] and not outer.keywords
            else None
        )
        return isinstance(called, ast.Name) and called.id in _NUMBERS

    def reads(self, source: tuple[str, ...]) -> ElementReads | None:
        elements, loops = list(self.elements()), list(self.iterated())
        places: list[ast.AST] = [node for node, *_ in elements]
        for loop, _, name, *_ in loops:
            inside = ast.walk(self.parents[loop] if isinstance(loop, ast.comprehension) else loop)
            places += [
                n
                for n in inside
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            ]
        if not places:
            return None
        attribute = next((base.attribute for _, base, _ in elements), None) or loops[0][3].attribute
        lines = frozenset(
            source[node.lineno - 1].strip() for node in places if hasattr(node, "lineno")
        )
        names = {n.id for n in ast.walk(self.method) if isinstance(n, ast.Name)}
        taken = any(name.endswith("_values") or name in ("super", "__class__") for name in names)
        exact = (
            all(map(self.wrapped, places))
            and not taken
            and not self.written()
            and not self.method.decorator_list
        )
        lists = self.lists(elements, loops) if exact else None
        numbers = {
            _number(base.attribute.dtype)
            for base in (*(e[1] for e in elements), *(each[3] for each in loops))
        }
        number = numbers.pop() if len(numbers) == 1 else None
        method = None if lists is None else self.rewritten(lists, places, number)
        if lists is None or method is None or number != "float":
            return ElementReads(attribute, lines, method)
        flat = self.flat(lists)
        return ElementReads(
            attribute, lines, method, whole_rows(method, flat) if flat is not None else None
        )

    def flat(self, lists: _Lists) -> dict[str, Row] | None:
        """What the lists are made of, by their names; None where not each is one row of numbers."""
        found = {}
        for name, base in lists.of.items():
            if base.ndim - (base.local is None) != 1 or not base.attribute.shape:
                return None
            made = lists.first.get(name) or ast.Name(str(base.local), ast.Load())
            found[name] = Row(
                made, base.attribute.shape[-1], base.attribute.kind != "tensor", base.local
            )
        return found

    def written(self) -> bool:
        stores = [
            n
            for n in ast.walk(self.method)
            if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)
        ]
        return any(self.rooted(node) is not None for node in stores) or self.index in self.bound

    def lists(
        self,
        elements: list[tuple[ast.Subscript, _Base, list[ast.expr]]],
        loops: list[tuple[ast.For | ast.comprehension, ast.expr, str, _Base, list[ast.expr]]],
    ) -> _Lists | None:
        """Puts lists in the place of what is read; None where one cannot be made before the
        loop."""
        lists = _Lists()
        for node, base, indices in elements:
            found = self.listed(lists, base, indices)
            if found is None:
                return None
            name, rest = found
            value: ast.expr = ast.Name(name, ast.Load())
            for each in rest[:-1]:
                value = ast.Subscript(value, each, ast.Load())
            node.value, node.slice = value, rest[-1]
        for loop, over, _, base, indices in loops:
            found = self.listed(lists, base, indices)
            if found is None:
                return None
            value = ast.Name(found[0], ast.Load())
            for each in found[1]:
                value = ast.Subscript(value, each, ast.Load())
            if isinstance(loop.iter, ast.Call) and over is not loop.iter:
                loop.iter.args = [value]
            else:
                loop.iter = value
        return lists

    def listed(
        self, lists: _Lists, base: _Base, indices: list[ast.expr]
    ) -> tuple[str, list[ast.expr]] | None:
        """(name of the list, the indices into it)."""
        shape = base.attribute.shape or ()
        if prod(shape[len(shape) - base.ndim :] if base.local else shape[1:]) > MOST_IN_LIST:
            return None
        if base.local is not None:
            of_local = lists.after[base.local] = f"{base.local}_values"
            lists.of[of_local] = base
            return of_local, indices
        used = {n.id for n in ast.walk(indices[0]) if isinstance(n, ast.Name)} if indices else {""}
        if len(shape) < 2 or not used <= {self.index}:
            return None
        row = ast.Subscript(
            ast.Attribute(ast.Name(self.own, ast.Load()), base.attribute.name, ast.Load()),
            indices[0],
            ast.Load(),
        )
        name = next((n for n, made in lists.first.items() if ast.dump(made) == ast.dump(row)), None)
        if name is None:
            name = f"{base.attribute.name.strip('_')}_values{len(lists.first) or ''}"
            lists.first[name] = row
            lists.of[name] = base
        return name, indices[1:]

    def rewritten(
        self, lists: _Lists, places: list[ast.AST], number: str | None
    ) -> ast.FunctionDef | None:
        method = _Unwrapped(places, number).visit(self.method)
        body: list[ast.stmt] = []
        for name, made in lists.first.items():
            body.append(_assign(name, made))
        for statement in method.body:
            body.append(statement)
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id in lists.after:
                body.append(_assign(lists.after[target.id], ast.Name(target.id, ast.Load())))
        if isinstance(method.body[0], ast.Expr) and isinstance(method.body[0].value, ast.Constant):
            body.insert(0, body.pop(body.index(method.body[0])))  # the docstring stays first
        method.body = body
        method.returns = None  # what annotations name may lie elsewhere
        for argument in method.args.args:
            argument.annotation = None
        ast.fix_missing_locations(method)
        return method if isinstance(method, ast.FunctionDef) else None


class _Unwrapped(ast.NodeTransformer):
    """`x.item()` and `x.tolist()` become `x`, which is a number of Python's by now; so does
    `float(x)` where `number` says that it is a float."""

    def __init__(self, places: list[ast.AST], number: str | None) -> None:
        self.places, self.number = places, number

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        func = node.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr in ("item", "tolist")
            and func.value in self.places
        ):
            return func.value
        if (
            isinstance(func, ast.Name)
            and func.id == self.number
            and node.args
            and node.args[0] in self.places
        ):
            return node.args[0]
        return node


def _calls(loop: ast.AST) -> int:
    """Calls that are made for each number, appending included; what the loop goes over is called
    once."""
    once = {node for iterated in _iterated(loop) for node in ast.walk(iterated)}
    return sum(isinstance(node, ast.Call) and node not in once for node in ast.walk(loop))


def _iterated(loop: ast.AST) -> list[ast.expr]:
    if isinstance(loop, ast.For):
        return [loop.iter]
    return [each.iter for each in getattr(loop, "generators", ())]


def _number(dtype: str | None) -> str | None:
    """What numbers of Python's a list of this type holds."""
    name = (dtype or "").rpartition(".")[2]
    starts = {"float": "float", "bfloat": "float", "int": "int", "uint": "int", "bool": "bool"}
    return next((kind for start, kind in starts.items() if name.startswith(start)), None)


def _assign(name: str, value: ast.expr) -> ast.stmt:
    call = ast.Call(ast.Attribute(value, "tolist", ast.Load()), [], [])
    return ast.Assign([ast.Name(name, ast.Store())], call)
