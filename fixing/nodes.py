"""What the source says of names: where they are assigned, passed and imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst
import libcst.matchers as m

from .project import Project, Source
from .sites import Site, enclosing

_NUMBER = m.Integer() | m.Float()
_CONSTANT = m.Name("True") | m.Name("False") | m.Name("None")


def is_literal(node: cst.BaseExpression) -> bool:
    """A number, a text, True, False or None."""
    plain = _NUMBER | m.SimpleString() | _CONSTANT
    return m.matches(node, plain | m.UnaryOperation(m.Minus(), _NUMBER))


def text_of(node: cst.BaseExpression) -> str | None:
    """The value of a plain string."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def key_of(node: cst.Subscript) -> str | None:
    """The text in `x["text"]`."""
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return text_of(node.slice[0].slice.value)
    return None


def entry_of(node: cst.BaseExpression, key: str) -> cst.BaseExpression | None:
    """The value of this key in a dict that is written out, as `{…}` or `dict(…)`."""
    if isinstance(node, cst.Dict):
        for element in node.elements:
            if isinstance(element, cst.DictElement) and text_of(element.key) == key:
                return element.value
    return passed_as(node, key) if is_dict(node) and isinstance(node, cst.Call) else None


def is_dict(node: cst.CSTNode) -> bool:
    return m.matches(node, m.Dict() | m.Call(m.Name("dict")))


def passed_as(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The value of this keyword in a call."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    return None


def spread_in(call: cst.Call) -> list[cst.BaseExpression]:
    """What it passes as `**`."""
    return [arg.value for arg in call.args if arg.star == "**"]


def is_called(call: cst.Call, name: str) -> bool:
    """Whether it calls `name(…)` or `….name(…)`."""
    return m.matches(call.func, m.Name(name) | m.Attribute(attr=m.Name(name)))


def calls_of(project: Project, *names: str) -> list[Site]:
    """The calls of these in the whole project."""
    return [
        Site(source, call)
        for source in project.sources()
        for call in source.find(cst.Call)
        if any(is_called(call, name) for name in names)
    ]


def targets_of(node: cst.CSTNode) -> list[Any]:
    """What an assignment binds."""
    if isinstance(node, cst.Assign):
        return [each.target for each in node.targets]
    if isinstance(node, cst.AnnAssign | cst.NamedExpr | cst.AugAssign):
        return [node.target]
    return []


def assigned_to(
    source: Source, name: str, function: cst.FunctionDef | None
) -> list[cst.BaseExpression]:
    """The values that this name is assigned in a function, or at module level."""
    found = []
    for node in source.find(cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.AugAssign):
        if not any(m.matches(target, m.Name(name)) for target in targets_of(node)):
            continue
        if enclosing(source, node, cst.FunctionDef) is not function:
            continue
        if function is None and enclosing(source, node, cst.ClassDef) is not None:
            continue
        if node.value is not None:
            found.append(node.value)
    return found


def entries_set(source: Source, name: str, key: str) -> Iterator[cst.BaseExpression]:
    """Values of `name["key"] = value`."""
    for node in source.find(cst.Assign):
        for target in targets_of(node):
            of_name = m.matches(target, m.Subscript(m.Name(name)))
            if of_name and key_of(target) == key:
                yield node.value


def param_of(function: cst.FunctionDef, name: str) -> cst.Param | None:
    """This parameter of a function; those of `*` and `**` are none."""
    params = function.params
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return next((each for each in every if each.name.value == name), None)


def plain_names(function: cst.FunctionDef) -> list[str]:
    """Its parameters that may be passed by position."""
    params = function.params
    return [each.name.value for each in (*params.posonly_params, *params.params)]


def passed_for(call: cst.Call, function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """What this call passes for a parameter of the function, by name or by position."""
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    names = plain_names(function)
    by_place = zip(names[names[:1] in (["self"], ["cls"]) :], plain, strict=False)
    return passed_as(call, name) or dict(by_place).get(name)


def import_of(source: Source, name: str) -> tuple[str, str] | None:
    """(module, name in it) that an import binds this name to; the second is "" for a module."""
    for node in source.find(cst.ImportFrom, cst.Import):
        if isinstance(node, cst.Import):
            for alias in node.names:
                if (alias.evaluated_alias or alias.evaluated_name) == name:
                    return alias.evaluated_name, ""
        elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            module = source.module.code_for_node(node.module) if node.module is not None else ""
            for alias in node.names:
                if (alias.evaluated_alias or alias.evaluated_name) == name:
                    return "." * len(node.relative) + module, alias.evaluated_name
    return None


def option_of(call: cst.Call) -> str | None:
    """Where argparse and click put the value of this option."""
    dest = passed_as(call, "dest")
    if dest is not None:
        return text_of(dest)
    flags = flags_of(call)
    first = next((flag for flag in flags if flag.startswith("--")), next(iter(flags), None))
    return first.lstrip("-").replace("-", "_") if first else None


def flags_of(call: cst.Call) -> list[str]:
    """'-j' and '--workers' of an option."""
    found = (text_of(arg.value) for arg in call.args if arg.keyword is None)
    return [flag for flag in found if flag and flag.startswith("-")]
