"""What a data set's `__getitem__` does with its index, read from its source without running it.

`read_access` answers a `Plan` where every use of the index is a look-up in an array (or a list) the
data set holds: then the same can be said for a whole batch at once. The plan holds that batch form
as code, made of the operations named here alone: names that are not recognised end the reading, and
nothing of the source is ever executed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ....profiler.store.inspection import Attribute
from ...case.code_text import MAX_CHARACTERS
from .batch_values import (
    Form,
    NotArrays,
    Value,
    as_number,
    as_type,
    call_each,
    dimensions_taken,
    from_list,
    look_up,
    permuted,
    pick_from,
    reshaped,
    to_tensor,
    unsqueezed,
)
from .source_literals import (
    TORCH_TYPES,
    about_type,
    constant_key,
    constant_subscripts,
    flat_constants,
    named_dtype,
    plain_dtype,
)

# The recorder stores at most this much source; a run that holds more was not written by it.
MAX_LINES = 200
MAX_NODES = 2_000
MAX_DEPTH = 24

# Names a batch method uses itself: a local of the same name is renamed.
_RESERVED = frozenset(
    {
        "source",
        "indices",
        "rows",
        "row",
        "torch",
        "np",
        "default_collate",
        "Dataset",
        "self",
        "len",
        "int",
        "float",
        "bool",
        "tuple",
        "list",
        "dict",
        "zip",
    }
)

_CASTS = ("float", "double", "half", "long", "int", "short", "bool")
_SAME = ("clone", "contiguous", "detach", "copy")
_LIST_KINDS = ("numbers", "texts", "paths", "list")
_ARRAY_FORMS: dict[str, Form] = {"tensor": "tensor", "ndarray": "array", "memmap": "array"}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}


@dataclass(frozen=True)
class Structure:
    """What a sample is made of: one value, or a tuple, list or dict of such."""

    kind: Literal["value", "tuple", "list", "dict"]
    value: Value | None = None
    keys: tuple[str | int, ...] = ()
    items: tuple[Structure, ...] = ()

    def leaves(self) -> Iterable[Value]:
        """Its values, in order."""
        if self.value is not None:
            yield self.value
        for item in self.items:
            yield from item.leaves()


@dataclass(frozen=True)
class Plan:
    """How a batch is made at once: the method's assignments, then its result.

    `transforms` names calls that are left to do a sample. `arrays` are the attributes read.
    """

    assigns: tuple[tuple[str, Value], ...]
    result: Structure
    arrays: tuple[str, ...]
    transforms: tuple[str, ...] = ()

    @property
    def leaves(self) -> tuple[Value, ...]:
        return tuple(self.result.leaves())


def read_access(lines: tuple[str, ...], attributes: Iterable[Attribute]) -> Plan:
    """The plan of a `__getitem__` with these source lines, on a data set with these attributes.

    Raises NotArrays with what stands in the way; never runs anything, whatever the lines hold.
    """
    if not lines:
        raise NotArrays("its source could not be read")
    if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_CHARACTERS:
        raise NotArrays("its source is too long to be read")
    try:
        tree = ast.parse("\n".join(lines))
        if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
            raise NotArrays("its source is too long to be read")
        method = tree.body[0] if len(tree.body) == 1 else None
        if not isinstance(method, ast.FunctionDef) or method.decorator_list:
            raise NotArrays("its source is not a plain method")
        return _Reader({a.name: a for a in attributes}, method).plan()
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotArrays("its source could not be parsed") from error


class _Reader:
    """Walks one method's statements, from the first to its return."""

    def __init__(self, attributes: Mapping[str, Attribute], method: ast.FunctionDef) -> None:
        names = method.args
        plain = not (names.vararg or names.kwarg or names.kwonlyargs or names.defaults)
        arguments = [*names.posonlyargs, *names.args]
        if not plain or len(arguments) != 2:
            raise NotArrays("it takes more than an index")
        self.attributes = attributes
        self.self_name = arguments[0].arg
        self.index = {arguments[1].arg}
        self.body = method.body
        self.locals: dict[str, Value] = {}
        self.assigns: list[tuple[str, Value]] = []
        self.arrays: dict[str, None] = {}
        self.transforms: dict[str, None] = {}
        self.depth = 0

    def plan(self) -> Plan:
        for statement in self.body:
            if isinstance(statement, ast.Return):
                if statement.value is None:
                    raise NotArrays("it returns nothing")
                result = self.structure(statement.value)
                if not self.arrays:
                    raise NotArrays("it looks up no array")
                return Plan(tuple(self.assigns), result, tuple(self.arrays), tuple(self.transforms))
            self.statement(statement)
        raise NotArrays("it does not end in a return")

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.If) and not node.orelse:
            self.guard(node)
        else:
            raise NotArrays(f"its line {node.lineno} is more than a look-up")

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            pairs = list(zip(target.elts, value.elts, strict=True))
            # Right sides are read before any name is bound, as Python does.
            values = [(each, self.index_again(source), source) for each, source in pairs]
            found = [
                (each, again, None if again else self.value(source))
                for each, again, source in values
            ]
            for each, again, made in found:
                self.bind(each, again, made)
        else:
            again = self.index_again(value)
            self.bind(target, again, None if again else self.value(value))

    def bind(self, target: ast.expr, index: bool, value: Value | None) -> None:
        if not isinstance(target, ast.Name) or target.id == self.self_name:
            raise NotArrays("it assigns to more than a local name")
        if index:
            self.index.add(target.id)
            self.locals.pop(target.id, None)
            return
        assert value is not None
        self.index.discard(target.id)
        if not self.index:
            raise NotArrays("it loses its index")
        name = f"{target.id}_" if target.id in _RESERVED else target.id
        self.assigns.append((name, value))
        self.locals[target.id] = replace(value, text=name)

    def index_again(self, node: ast.expr) -> bool:
        """Whether this is the index itself under another name, or made an int."""
        if isinstance(node, ast.Name) and node.id in self.index:
            return True
        call = node if isinstance(node, ast.Call) and not node.keywords else None
        if call is None:
            return False
        as_int = isinstance(call.func, ast.Name) and call.func.id == "int" and len(call.args) == 1
        to_list = (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("tolist", "item")
            and not call.args
        )
        inner: ast.expr | None = call.args[0] if as_int else None
        if to_list and isinstance(call.func, ast.Attribute):
            inner = call.func.value
        return isinstance(inner, ast.Name) and inner.id in self.index

    def guard(self, node: ast.If) -> None:
        """`if torch.is_tensor(index): ...` about the index, or `if self.transform: x =
        self.transform(x)`."""
        if all(
            isinstance(each, ast.Assign)
            and len(each.targets) == 1
            and isinstance(each.targets[0], ast.Name)
            and each.targets[0].id in self.index
            and self.index_again(each.value)
            for each in node.body
        ) and about_type(node.test, self.index):
            return
        name = self.guarded(node.test)
        if name is None:
            raise NotArrays(f"its line {node.lineno} decides something a sample")
        if self.attribute(name).kind == "none":
            return
        for each in node.body:
            self.statement(each)

    def guarded(self, test: ast.expr) -> str | None:
        """The attribute that `self.a`, or `self.a is not None`, asks for."""
        if (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], ast.IsNot)
        ):
            last = test.comparators[0]
            test = test.left if isinstance(last, ast.Constant) and last.value is None else test
        name = self.own(test)
        if name is None:
            return None
        return name if self.attribute(name).kind in ("none", "callable", "other") else None

    def own(self, node: ast.expr) -> str | None:
        """The name `a` of `self.a`."""
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.self_name
        ):
            return node.attr
        return None

    def attribute(self, name: str) -> Attribute:
        found = self.attributes.get(name)
        if found is None:
            raise NotArrays(f"what self.{name} is was not recorded")
        return found

    def structure(self, node: ast.expr) -> Structure:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotArrays("its result is nested too deeply")
        try:
            if isinstance(node, ast.Tuple | ast.List):
                kind: Literal["tuple", "list"] = "tuple" if isinstance(node, ast.Tuple) else "list"
                if not node.elts:
                    raise NotArrays("a sample is empty")
                return Structure(kind, items=tuple(self.structure(each) for each in node.elts))
            if isinstance(node, ast.Dict):
                keys = tuple(constant_key(each) for each in node.keys)
                return Structure(
                    "dict", keys=keys, items=tuple(self.structure(each) for each in node.values)
                )
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "dict"
            ):
                if node.args or any(each.arg is None for each in node.keywords):
                    raise NotArrays("it builds a dict of more than keywords")
                return Structure(
                    "dict",
                    keys=tuple(str(each.arg) for each in node.keywords),
                    items=tuple(self.structure(each.value) for each in node.keywords),
                )
            return Structure("value", self.value(node))
        finally:
            self.depth -= 1

    def value(self, node: ast.expr) -> Value:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotArrays("an expression is nested too deeply")
        try:
            if isinstance(node, ast.Name):
                if node.id in self.locals:
                    return self.locals[node.id]
                if (
                    node.id in self.index
                ):  # a copy: the sampler's own tensor may be what it is made of
                    return Value("rows.clone()", "tensor", 0, "int64", python=True)
                raise NotArrays(f"it uses {node.id}")
            if isinstance(node, ast.Subscript):
                return self.subscript(node)
            if isinstance(node, ast.Call):
                return self.call(node)
            if isinstance(node, ast.BinOp):
                return self.arithmetic(node)
            raise NotArrays(f"its line {node.lineno} is more than a look-up")
        finally:
            self.depth -= 1

    def subscript(self, node: ast.Subscript) -> Value:
        name = self.own(node.value)
        if name is None:
            return pick_from(self.value(node.value), constant_subscripts(node.slice))
        first: ast.expr = node.slice
        rest: tuple[int | slice, ...] = ()
        if isinstance(first, ast.Tuple) and first.elts:
            rest = constant_subscripts(ast.Tuple(first.elts[1:], ast.Load()))
            first = first.elts[0]
        found = self.attribute(name)
        inner = (
            None if isinstance(first, ast.Name) and first.id in self.index else self.value(first)
        )
        if found.kind in _ARRAY_FORMS:
            form = _ARRAY_FORMS[found.kind]
            if found.shape is None or not found.shape:
                raise NotArrays(f"the shape of self.{name} was not recorded")
            dtype = plain_dtype(found.dtype)
            if form == "array" and (dtype is None or dtype == "uint64"):
                raise NotArrays(f"self.{name} holds no plain numbers")
            ndim = len(found.shape) - 1 - dimensions_taken(rest)
            if ndim < 0 or len(rest) > len(found.shape) - 1:
                raise NotArrays(f"it takes more of self.{name} than it has")
            self.arrays[name] = None
            return look_up(found, form, inner, rest, ndim, dtype)
        if found.kind in _LIST_KINDS and not rest:
            self.arrays[name] = None
            return from_list(name, inner, found.kind in ("texts", "paths"))
        raise NotArrays(f"self.{name} is no array")

    def call(self, node: ast.Call) -> Value:
        func = node.func
        if isinstance(func, ast.Name):
            if func.id in ("int", "float", "bool") and len(node.args) == 1 and not node.keywords:
                return as_number(self.value(node.args[0]), func.id)
            raise NotArrays(f"it calls {func.id}")
        if not isinstance(func, ast.Attribute):
            raise NotArrays("it calls what it has looked up")
        own = self.own(func)
        if own is not None:
            return self.transform(own, node)
        root = func.value.id if isinstance(func.value, ast.Name) else None
        if root in ("torch", "np", "numpy") and root not in self.locals:
            return self.convert(root, func.attr, node)
        return _method(self.value(func.value), func.attr, node)

    def transform(self, name: str, node: ast.Call) -> Value:
        if (
            self.attribute(name).kind not in ("callable", "other")
            or len(node.args) != 1
            or node.keywords
        ):
            raise NotArrays(f"it calls self.{name}")
        self.transforms[name] = None
        return call_each(self.value(node.args[0]), f"source.{name}({{}})")

    def convert(self, module: str, name: str, node: ast.Call) -> Value:
        """torch.tensor(x), torch.as_tensor(x), torch.from_numpy(x), np.array(x), np.asarray(x),
        with a dtype or not."""
        known = ("tensor", "as_tensor", "from_numpy") if module == "torch" else ("array", "asarray")
        dtypes = [each.value for each in node.keywords if each.arg == "dtype"] + node.args[1:2]
        extra = len(node.args) > 2 or any(each.arg != "dtype" for each in node.keywords)
        if name not in known or not node.args or extra or len(dtypes) > 1:
            raise NotArrays(f"it calls {module}.{name}")
        value = self.value(node.args[0])
        dtype = named_dtype(dtypes[0]) if dtypes else None
        if module != "torch":
            if value.form != "array":
                raise NotArrays(f"it calls {module}.{name}")
            return as_type(value, dtype) if dtype else value
        return to_tensor(value, dtype)

    def arithmetic(self, node: ast.BinOp) -> Value:
        symbol = _OPERATORS.get(type(node.op))
        if symbol is None:
            raise NotArrays("it computes more than sums and products")
        left, right = self.constant(node.left), self.constant(node.right)
        if (left is None) == (right is None):
            raise NotArrays("it computes with more than one value and a number")
        value = self.value(node.left if left is None else node.right)
        # A single number follows the rules of Python or of NumPy's scalars, a batch of them those
        # of arrays.
        if value.form == "list" or value.python or (value.form == "array" and not value.ndim):
            raise NotArrays("it computes with single numbers")
        return replace(
            value, text=f"({left or value.text} {symbol} {right or value.text})", dtype=None
        )

    def constant(self, node: ast.expr) -> str | None:
        """The text of a finite number written out, with a sign or without."""
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
            return None
        if not isinstance(node.value, int | float):
            return None
        number = sign * node.value
        if not math.isfinite(number) or abs(number) > 1e18:
            return None
        return f"({number!r})" if sign < 0 else repr(number)


def _method(value: Value, name: str, node: ast.Call) -> Value:
    """A method of one sample's value, as it is for the batch."""
    if node.keywords:
        raise NotArrays(f"it calls .{name}()")
    if value.form == "list" or value.python:
        raise NotArrays(f"it calls .{name}() on what is no array")
    if name in _SAME and not node.args:
        return value
    if value.form == "tensor" and name in _CASTS and not node.args:
        return as_type(value, TORCH_TYPES[name])
    if name in ("to", "type") and value.form == "tensor" and len(node.args) == 1:
        return as_type(value, named_dtype(node.args[0]))
    if name == "astype" and value.form == "array" and len(node.args) == 1:
        return as_type(value, named_dtype(node.args[0]))
    if name == "numpy" and value.form == "tensor" and not node.args:
        return replace(value.then(".numpy()"), form="array")
    if name == "item" and value.ndim == 0 and not node.args and value.dtype:
        kind = "bool" if value.dtype == "bool" else "float" if "float" in value.dtype else "int"
        return as_number(value, kind)
    numbers = flat_constants(node.args)
    ndim = value.ndim
    if ndim is None:
        raise NotArrays(f"it calls .{name}()")
    if name in ("reshape", "view") and numbers:
        return reshaped(value, numbers)
    if name in ("flatten", "ravel") and not node.args:
        return reshaped(value, (-1,))
    if name == "unsqueeze" and value.form == "tensor" and len(numbers) == 1:
        return unsqueezed(value, numbers[0])
    permutes = (name == "permute" and value.form == "tensor") or (
        name == "transpose" and value.form == "array"
    )
    if permutes and sorted(numbers) == list(range(ndim)):
        return permuted(value, (0, *(n + 1 for n in numbers)))
    raise NotArrays(f"it calls .{name}()")
