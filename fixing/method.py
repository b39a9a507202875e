"""A method of the user's as an edit sees it: what in it differs from sample to sample, and what of
its class may be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import libcst as cst
import libcst.matchers as m

from ..advisors.code.method import named_as_drawing
from .nodes import plain_names, targets_of
from .project import Source, parts_like
from .sites import enclosing

# Results that can be gone through once only.
_ONCE = (
    *("open", "iter", "map", "filter", "zip", "enumerate", "reversed", "reader", "DictReader"),
    *("scandir", "glob", "iglob", "rglob", "iterdir", "walk", "finditer", "items", "keys"),
    "values",
)
_IN_PLACE = (
    *("append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear", "update", "add"),
    *("setdefault", "popitem", "discard", "fill_", "add_", "mul_", "copy_", "put", "resize"),
)


@dataclass(frozen=True)
class Method:
    """A function; `owner` is its class."""

    source: Source
    node: cst.FunctionDef
    owner: cst.ClassDef | None

    @classmethod
    def around(cls, source: Source, node: cst.CSTNode) -> Method | None:
        """The method or function that holds this node."""
        function = enclosing(source, node, cst.FunctionDef)
        if function is None:
            return None
        owner = enclosing(source, function, cst.ClassDef)
        return cls(source, function, owner)

    @property
    def self_name(self) -> str | None:
        """How the method calls its object; None of a plain function."""
        plain = plain_names(self.node)
        if self.owner is None or not plain:
            return None
        decorated = {self.source.text(each.decorator) for each in self.node.decorators}
        return None if decorated & {"staticmethod", "classmethod"} else plain[0]

    @cached_property
    def statements(self) -> tuple[Any, ...]:
        """Statements of this function in the order of the source, those of blocks included."""
        kinds: tuple[Any, ...] = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
        found = [
            node
            for node in self.source.find(*kinds)
            if node is not self.node and enclosing(self.source, node, cst.FunctionDef) is self.node
        ]
        return tuple(sorted(found, key=lambda node: self.source.at(node).start.line))

    @cached_property
    def varying(self) -> frozenset[str]:
        """Local names whose values differ from sample to sample, or may."""
        only = {each.name.value for each in self.node.params.kwonly_params}
        names = {*plain_names(self.node), *only} - {self.self_name or ""}
        for _ in range(3):  # a loop carries values back to its beginning
            for targets, value in self._bindings():
                if names & names_in(value) or draws(self.source, value):
                    names |= targets
        return frozenset(names)

    def _bindings(self) -> Iterator[tuple[set[str], cst.CSTNode]]:
        simple = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr)
        for node in self.source.find(*simple, cst.For, cst.WithItem, cst.CompFor):
            if enclosing(self.source, node, cst.FunctionDef) is not self.node:
                continue
            if isinstance(node, cst.For | cst.CompFor):
                yield names_in(node.target), node.iter
            elif isinstance(node, cst.WithItem):
                if node.asname is not None:
                    yield names_in(node.asname.name), node.item
            elif node.value is not None:
                yield names_in(*targets_of(node)), node.value
            if isinstance(node, cst.For | cst.AugAssign):  # bound more than once
                yield names_in(node.target), cst.Name("True")

    @cached_property
    def locals(self) -> frozenset[str]:
        """All names that the function binds."""
        bound = {name for targets, _ in self._bindings() for name in targets}
        return frozenset(bound | self.varying)

    def depends_on_self_alone(
        self, node: cst.BaseExpression, known: set[str] | None = None
    ) -> bool:
        """Whether this expression is the same for every sample: it reads nothing but attributes of
        the object that only `__init__` sets, and names of the module. `known` are further names."""
        used = names_in(node) - (known or set())
        if used & self.locals or draws(self.source, node) or m.findall(node, m.Yield() | m.Await()):
            return False
        if self.self_name not in used and not known:
            return False
        attributes = {
            each.attr.value for each in parts_like(node, m.Attribute(m.Name(self.self_name or "")))
        }
        return not any(self._set_later(name) for name in attributes)

    def _set_later(self, attribute: str) -> bool:
        """Whether anything in the file besides an `__init__` sets this attribute, or changes what
        it holds."""
        held = m.Attribute(m.Name(), m.Name(attribute))
        in_place = m.Name(m.MatchIfTrue(lambda name: name in _IN_PLACE))
        for node in self.source.find(cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Call, cst.Del):
            function = enclosing(self.source, node, cst.FunctionDef)
            if function is not None and function.name.value == "__init__":
                continue
            deleted = isinstance(node, cst.Del) and m.findall(node, held)
            if deleted or m.matches(node, m.Call(m.Attribute(held, in_place))):
                return True
            if any(m.matches(each, held | m.Subscript(held)) for each in targets_of(node)):
                return True
        return False

    def uses(self, name: str) -> list[cst.Name]:
        """Where this function reads the name."""
        found = []
        for node in self.source.find(cst.Name):
            if node.value == name and enclosing(self.source, node, cst.FunctionDef) is self.node:
                outer: Any = next(self.source.parents(node))
                aside = (getattr(outer, "attr", None), getattr(outer, "keyword", None))
                bound = isinstance(outer, cst.AssignTarget | cst.AsName | cst.Param)
                if node not in aside and not bound:
                    found.append(node)
        return found

    def changed(self, name: str) -> bool:
        """Whether the function changes in place what the name is bound to, or binds it again."""
        bindings = [targets for targets, _ in self._bindings() if name in targets]
        return len(bindings) > 1 or self.changed_in_place(name)

    def changed_in_place(self, name: str) -> bool:
        """Whether the function changes what the name is bound to, for whoever else holds it."""
        for node in self.uses(name):
            outers = self.source.parents(node)
            outer = next(outers)
            if isinstance(outer, cst.Attribute) and outer.attr.value in _IN_PLACE:
                return True
            if isinstance(outer, cst.AugAssign | cst.Del):
                return True
            if isinstance(outer, cst.Subscript) and isinstance(
                next(outers), cst.AssignTarget | cst.AugAssign | cst.Del
            ):
                return True
            call = next(outers, None)
            given = isinstance(outer, cst.Arg) and isinstance(call, cst.Call)
            if given and "shuffle" in self.source.text(call.func):  # type: ignore[union-attr]
                return True
        return False

    @property
    def constructor(self) -> cst.FunctionDef | None:
        """The class's own `__init__`, if what stands at its end always runs."""
        init = self.method("__init__")
        return init if init is not None and not m.findall(init.body, m.Return()) else None

    def method(self, name: str) -> cst.FunctionDef | None:
        """A method that the class itself defines."""
        named = m.FunctionDef(m.Name(name))
        body: Any = self.owner.body.body if self.owner is not None else ()
        return next((each for each in body if m.matches(each, named)), None)

    def free_name(self, wanted: str) -> str:
        """An attribute's name that nothing in the file has: the wanted one, or one like it."""
        wanted = wanted if wanted.startswith("_") else f"_{wanted}"
        return free_name(self.source, wanted, "_")


def free_name(source: Source, wanted: str, between: str = "") -> str:
    """The wanted name, or with a number where the file has it."""
    taken, number, found = {node.value for node in source.find(cst.Name)}, 2, wanted
    while found in taken:
        found, number = f"{wanted}{between}{number}", number + 1
    return found


def names_in(*nodes: cst.CSTNode) -> set[str]:
    """The names in these expressions, not those behind dots or of keywords."""
    found: set[str] = set()
    for node in nodes:
        collector = _Names()
        node.visit(collector)
        found |= collector.found
    return found


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)


def in_words(node: cst.CSTNode, words: Mapping[str, cst.BaseExpression]) -> Any:
    """The node with names as other expressions; those behind dots and of keywords stay."""
    return node.visit(_Words(words))


class _Words(cst.CSTTransformer):
    def __init__(self, words: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._words = words

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> Any:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> Any:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> Any:
        return self._words.get(original_node.value, updated_node)


def draws(source: Source, node: cst.CSTNode) -> bool:
    """Whether it may give something else each time, whatever it depends on."""
    calls = parts_like(node, m.Call())
    return any(named_as_drawing(source.module.code_for_node(call.func)) for call in calls)


def goes_once(node: cst.CSTNode) -> bool:
    """Whether what this expression gives can be gone through once only."""
    if isinstance(node, cst.GeneratorExp):
        return True
    return isinstance(node, cst.Call) and last_name(node.func) in _ONCE


def last_name(node: cst.CSTNode) -> str:
    """'load' of `np.load`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def parsed(text: str, source: Source) -> tuple[Any, ...]:
    """Statements of this text, indented as the file is."""
    tree = cst.parse_module(text, config=source.module.config_for_parsing)
    return tuple(tree.body)


def block(body: cst.BaseSuite, statements: Sequence[Any], end: bool = True) -> cst.IndentedBlock:
    """The block with more statements, behind or in front of its own."""
    if isinstance(body, cst.SimpleStatementSuite):
        body = cst.IndentedBlock([cst.SimpleStatementLine(body.body)])
    assert isinstance(body, cst.IndentedBlock)
    return body.with_changes(body=[*body.body, *statements] if end else [*statements, *body.body])
