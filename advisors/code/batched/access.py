"""How `__getitem__` uses its index, read from its source; nothing of the source is executed.

`read_access` gives a `Plan` if the method only looks up arrays and lists of its data set. The plan
is code for a whole batch. Any operation that is not listed here raises NotArrays.
"""

import ast
import builtins
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from ....profiler.base.metadata import clean
from ....profiler.store.inspection import Attribute
from ...case.code_text import parsed
from .batch_values import (
    ARRAY_FORMS,
    ROWS,
    NotArrays,
    Value,
    as_number,
    called,
    computed,
    converted,
    from_list,
    look_up,
    pick_from,
)
from .source_literals import OPERATORS, constant_key, constant_subscripts, named_dtype, number_text

# Names that a batch method uses: like those of builtins, they are no names for its locals.
_RESERVED = ("source", "indices", "rows", "row", "torch", "np", "default_collate", "Dataset")
_LIST_KINDS = ("numbers", "texts", "paths", "list")


# What a sample is made of: one value, or a tuple, list or dict of such.
Sample = Value | tuple["Sample", ...] | list["Sample"] | dict[str | int, "Sample"]


def items(sample: Sample) -> Iterable[Sample]:
    """What a tuple, list or dict holds."""
    if isinstance(sample, Value):
        return ()
    return sample.values() if isinstance(sample, dict) else sample


def leaves(sample: Sample) -> list[Value]:
    """Its values, in order."""
    if isinstance(sample, Value):
        return [sample]
    return [leaf for item in items(sample) for leaf in leaves(item)]


@dataclass(frozen=True)
class Plan:
    """How to make a batch: the method's assignments, then its result."""

    assigns: tuple[tuple[str, Value], ...]
    result: Sample


def read_access(lines: tuple[str, ...], attributes: Iterable[Attribute]) -> Plan:
    """The plan of a `__getitem__` with these lines, for a data set with these attributes.

    Raises NotArrays with the reason if there is none, whatever the lines hold.
    """
    match parsed(lines):
        case ast.Module(
            [
                ast.FunctionDef(
                    _,
                    ast.arguments([], [ast.arg(own), ast.arg(index)], None, [], [], None, []),
                    body,
                    [],
                )
            ]
        ):
            with suppress(RecursionError):
                return _Reader({a.name: a for a in attributes}, own, index).plan(body)
    raise NotArrays("its source is no plain method with an index")


class _Reader:
    """Reads the statements of a method, from the first to its return."""

    def __init__(self, attributes: Mapping[str, Attribute], own: str, index: str) -> None:
        self.attributes, self.own = attributes, own
        self.index = {index}
        self.locals: dict[str, Value] = {}
        self.assigns: list[tuple[str, Value]] = []
        self.looks_up = False

    def plan(self, body: list[ast.stmt]) -> Plan:
        for node in body:
            if isinstance(node, ast.Return) and node.value is not None:
                result = self.structure(node.value)
                if not self.looks_up:
                    raise NotArrays("it looks up no array")
                return Plan(tuple(self.assigns), result)
            self.statement(node)
        raise NotArrays("it does not end in a return")

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant()):  # a docstring
                pass
            case ast.AnnAssign(target, _, ast.expr() as value) | ast.Assign([target], value):
                self.assign(target, value)
            case ast.If(
                ast.Call(ast.Attribute(attr="is_tensor") | ast.Name("isinstance"), [about, *_]),
                [ast.Assign([ast.Name() as target], value)],
                [],
            ) if all(map(self.is_index, (about, target, value))):
                pass
            case ast.If(
                (
                    ast.Attribute(ast.Name(self.own), name)
                    | ast.Compare(
                        ast.Attribute(ast.Name(self.own), name), [ast.IsNot()], [ast.Constant(None)]
                    )
                ),
                _,
                [],
            ) if self.attribute(name).kind == "none":
                pass
            case _:
                raise _more(node)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        pairs = [(target, value)]
        match target, value:
            case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values):
                pairs = list(zip(targets, values, strict=True))
        # Python evaluates all right sides before it binds a name.
        found = [(to, None if self.is_index(of) else self.value(of)) for to, of in pairs]
        for to, made in found:
            if not isinstance(to, ast.Name) or to.id == self.own:
                raise _more(to)
            self.bind(to.id, made)

    def bind(self, local: str, value: Value | None) -> None:
        """Gives a local this value; None is the index."""
        self.locals.pop(local, None)
        if value is None:
            self.index.add(local)
            return
        self.index.discard(local)
        if not self.index:
            raise NotArrays("it assigns to its index")
        name = f"{local}_" if local in _RESERVED or hasattr(builtins, local) else local
        self.assigns.append((name, value))
        self.locals[local] = replace(value, text=name)

    def is_index(self, node: ast.expr) -> bool:
        """Whether this is the index: by any of its names, or made an int."""
        match node:
            case (
                ast.Name(name)
                | ast.Call(ast.Name("int"), [ast.Name(name)], [])
                | ast.Call(ast.Attribute(ast.Name(name), "tolist" | "item"), [], [])
            ):
                return name in self.index
        return False

    def attribute(self, name: str) -> Attribute:
        if name not in self.attributes:
            raise NotArrays(f"what self.{name} is was not recorded")
        return self.attributes[name]

    def structure(self, node: ast.expr) -> Sample:
        match node:
            case ast.Tuple([_, *_] as parts):
                return tuple(map(self.structure, parts))
            case ast.List([_, *_] as parts):
                return list(map(self.structure, parts))
            case ast.Call(ast.Name("dict"), [], keywords):
                keys: list[ast.expr | None] = [ast.Constant(each.arg) for each in keywords]
                values = [each.value for each in keywords]
            case ast.Dict(keys, values):
                pass
            case _:
                return self.value(node)
        return dict(zip(map(constant_key, keys), map(self.structure, values), strict=True))

    def value(self, node: ast.expr) -> Value:
        try:
            return self.read(node)
        except NotArrays as reason:
            raise reason if reason.args else _more(node) from None

    def read(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(name) if name in self.locals:
                return self.locals[name]
            case ast.Name(name) if name in self.index:
                # A copy: rows may share memory with the sampler's own tensor.
                return replace(ROWS.then(".clone()"), python=True)
            case ast.Subscript(ast.Attribute(ast.Name(self.own), name), key):
                return self.looked_up(self.attribute(name), key)
            case ast.Subscript(inner, key):
                return pick_from(self.value(inner), constant_subscripts(key))
            case ast.BinOp(left, op, right) if type(op) in OPERATORS:
                first, last = number_text(left), number_text(right)
                if (first is None) != (last is None):
                    value = self.value(left if first is None else right)
                    texts = first or value.text, last or value.text
                    return computed(value, f" {OPERATORS[type(op)]} ".join(texts))
            case ast.Call(ast.Name("int" | "float" | "bool" as name), [only], []):
                return as_number(self.value(only), name)
            case ast.Call(
                ast.Attribute(ast.Name("torch" as module), "tensor" | "as_tensor" | "from_numpy")
                | ast.Attribute(ast.Name("np" | "numpy" as module), "array" | "asarray"),
                [given, *types],
                keywords,
            ) if module not in self.locals:
                types += [each.value for each in keywords if each.arg == "dtype"]
                if len(types) < 2 and len(node.args) + len(keywords) == 1 + len(types):
                    dtype = named_dtype(types[0]) if types else None
                    return converted(self.value(given), module, dtype)
            case ast.Call(ast.Attribute(ast.Name(name))) if name not in {*self.locals, *self.index}:
                raise NotArrays
            case ast.Call(ast.Attribute(inner, name), arguments, []):
                return called(self.value(inner), name, arguments)
        raise NotArrays

    def looked_up(self, attribute: Attribute, key: ast.expr) -> Value:
        """`self.attribute[key]`."""
        first, *others = key.elts if isinstance(key, ast.Tuple) and key.elts else [key]
        rest = constant_subscripts(ast.Tuple(others, ast.Load()))
        direct = isinstance(first, ast.Name) and first.id in self.index
        inner = ROWS if direct else self.value(first)
        self.looks_up = True
        if attribute.kind in ARRAY_FORMS:
            return look_up(attribute, inner, rest)
        if attribute.kind not in _LIST_KINDS or rest:
            raise NotArrays(f"self.{attribute.name} is no array")
        return from_list(attribute, inner)


def _more(node: ast.AST) -> NotArrays:
    return NotArrays(f"`{clean(ast.unparse(node), 80)}` is more than a lookup")
