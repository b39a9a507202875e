"""Follows an argument's value to the literal that decides it: through names, parameters, imports,
data classes, dicts and command line options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m

from .nodes import (
    assigned_to,
    calls_of,
    entries_set,
    entry_of,
    import_of,
    is_called,
    is_dict,
    is_literal,
    key_of,
    param_of,
    passed_as,
    passed_for,
    spread_in,
    targets_of,
    text_of,
)
from .options import OptionGiven, click_option, default_of, fields_named, in_configs, option_named
from .project import CannotPatch, Project, Source, parts_like
from .sites import Site, enclosing, site_at

MAX_STEPS = 24
_CASTS = ("int", "bool", "float", "str")
_OPTIONS = ("typer.Option", "Option", "Field", "pydantic.Field")
_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
# What may stand in a value that no option decides, besides numbers.
_OF_THE_HOST = ("os", "multiprocessing", "psutil", "torch", "len", "min", "max", *_CASTS)


class Literal(NamedTuple):
    """The expression to replace; where it is a text, the new value is one too."""

    source: Source
    node: cst.BaseExpression


class Missing(NamedTuple):
    """The value is not given: it would be added to this call (or dict)."""

    source: Source
    node: cst.CSTNode


@dataclass(frozen=True)
class _Place:
    """Where an expression stands; `site` is the call whose callers are known."""

    source: Source
    node: cst.CSTNode
    site: Site | None = None
    steps: int = 0

    def at(self, node: cst.CSTNode, source: Source | None = None) -> _Place:
        if self.steps >= MAX_STEPS:
            raise CannotPatch("the value is passed on too often to be followed")
        site = self.site if source in (None, self.source) else None
        return _Place(source or self.source, node, site, self.steps + 1)

    def of(self, site: Site, node: cst.CSTNode) -> _Place:
        return _Place(site.source, node, site, self.at(node).steps)

    @property
    def function(self) -> cst.FunctionDef | None:
        return enclosing(self.source, self.node, cst.FunctionDef)

    @property
    def owner(self) -> cst.ClassDef | None:
        return enclosing(self.source, self.node, cst.ClassDef)

    @property
    def shown(self) -> str:
        return self.source.place(self.node)


_Value = tuple[cst.BaseExpression, _Place]


class Follower:
    """Of one change: `name` is the argument, `value` the source of the new value."""

    def __init__(self, project: Project, name: str, value: str) -> None:
        self._project, self._name, self._value = project, name, value

    def follow(self, site: Site, expression: cst.BaseExpression) -> Literal:
        """The literal that this argument of a call comes from. Raises CannotPatch, OptionGiven."""
        return self._value_of(expression, _Place(site.source, expression, site))

    def entry(self, site: Site, keywords: cst.BaseExpression) -> Literal | Missing:
        """The entry of this name in what `**keywords` stands for. Raises CannotPatch."""
        return self._entry(keywords, self._name, _Place(site.source, keywords, site))

    # Expressions.

    def _value_of(self, node: cst.BaseExpression, place: _Place) -> Literal:
        if is_literal(node):
            return Literal(place.source, node)
        if isinstance(node, cst.Call):
            return self._of_call(node, place)
        if isinstance(node, cst.Name):
            return self._of_name(node.value, place)
        if isinstance(node, cst.Attribute):
            return self._of_attribute(node.value, node.attr.value, place)
        key = key_of(node) if isinstance(node, cst.Subscript) else None
        if key is not None:
            found = self._entry(node.value, key, place)  # type: ignore[attr-defined]
            if isinstance(found, Literal):
                return found
            raise CannotPatch(f"{place.shown} has no entry {key!r} to change")
        return self._computed(node, place)

    def _of_call(self, node: cst.Call, place: _Place) -> Literal:
        name, given = place.source.text(node.func), [arg.value for arg in node.args]
        text = text_of(given[-1] if name == "getattr" else given[0]) if given else None
        if name in _CASTS and len(given) == 1:
            return self._value_of(given[0], place)
        if name == "getattr" and len(given) == 2 and text is not None:
            return self._of_attribute(given[0], text, place)
        if name in _ENVIRONMENT and text is not None:
            raise OptionGiven(
                f"{place.shown} takes it from the environment: set {text}={self._value}"
            )
        if isinstance(node.func, cst.Attribute) and name.endswith(".get") and text is not None:
            found = self._entry(node.func.value, text, place)
            if isinstance(found, Literal):
                return found
            if len(given) > 1:
                return self._value_of(given[1], place)
        default = passed_as(node, "default") if is_called(node, "field") else None
        if name in _OPTIONS and given:
            default = given[0]
        if default is not None:
            return self._value_of(default, place)
        return self._computed(node, place)

    def _computed(self, node: cst.BaseExpression, place: _Place) -> Literal:
        """A value that only numbers and the host decide is replaced as a whole."""
        behind = {id(each.attr) for each in parts_like(node, m.Attribute())}
        for name in parts_like(node, m.Name()):
            if name.value not in _OF_THE_HOST and id(name) not in behind:
                raise CannotPatch(
                    f"{self._name} is computed at {place.shown}: `{place.source.text(node)}`; "
                    f"it should come to {self._value}"
                )
        return Literal(place.source, node)

    # Names.

    def _of_name(self, name: str, place: _Place) -> Literal:
        for value, where in self._values(name, place):
            return self._value_of(value, where)
        raise CannotPatch(f"where {name} of {place.shown} comes from is not known")

    def _values(self, name: str, place: _Place) -> Iterator[_Value]:
        """What this name is bound to: in the function, by its caller, in the module, by import."""
        function = place.function
        while function is not None:
            found = self._only(assigned_to(place.source, name, function), name, place)
            if found is not None:
                yield found
                return
            if param_of(function, name) is not None:
                yield self._of_parameter(name, function, place)
                return
            function = enclosing(place.source, function, cst.FunctionDef)
        found = self._only(assigned_to(place.source, name, None), name, place)
        if found is not None:
            yield found
            return
        imported = import_of(place.source, name)
        if imported is not None and imported[1]:
            other = self._project.module(imported[0], place.source)
            if other is not None:
                yield from self._values(imported[1], place.at(other.module, other))

    @staticmethod
    def _only(found: list[cst.BaseExpression], name: str, place: _Place) -> _Value | None:
        if len(found) > 1:
            again = place.source.place(found[1])
            raise CannotPatch(f"{again} sets {name} again: change it there")
        return (found[0], place.at(found[0])) if found else None

    def _of_parameter(self, name: str, function: cst.FunctionDef, place: _Place) -> _Value:
        """What the caller passes, else the default. Raises CannotPatch."""
        option = click_option(place.source, function, name)
        if option is not None:
            default = default_of(self._project, place.source, option, self._value)
            return default, place.at(default)
        for site in self._callers(function, place):
            value = passed_for(site.call, function, name)
            if value is not None:
                return value, place.of(site, value)
            for spread in spread_in(site.call):
                found = self._entry(spread, name, place.of(site, spread))
                if isinstance(found, Literal):
                    return found.node, place.at(found.node, found.source)
        param = param_of(function, name)
        if param is None or param.default is None:
            shown = f"{function.name.value} of {place.source.place(function)}"
            raise CannotPatch(f"what {name} of {shown} is given is not known")
        return param.default, place.at(param.default)

    def _callers(self, function: cst.FunctionDef, place: _Place) -> Iterator[Site]:
        """The call of this function that led to the loader, else the only one in the project."""
        site = place.site
        if site is not None and site.outer and site.function is function:
            yield site_at(self._project, site.outer)
            return
        name = function.name.value
        owner = enclosing(place.source, function, cst.ClassDef)
        if name == "__init__" and owner is not None:
            name = owner.name.value
        found = calls_of(self._project, name)
        if len(found) > 1:
            raise CannotPatch(f"{name} is called in {len(found)} places, with values of their own")
        yield from found

    # Attributes.

    def _of_attribute(self, held: cst.BaseExpression, name: str, place: _Place) -> Literal:
        if isinstance(held, cst.Name):
            imported = import_of(place.source, held.value)
            dotted = ".".join(part for part in imported or () if part)
            other = self._project.module(dotted, place.source) if imported is not None else None
            if other is not None:
                return self._of_name(name, place.at(other.module, other))
        if m.matches(held, m.Name("self") | m.Attribute(m.Name("self"), m.Name("hparams"))):
            found = self._of_self(name, place)
            if found is not None:
                return self._value_of(*found)
        option = option_named(self._project, name)
        if option is not None:
            default = default_of(self._project, option.source, option.call, self._value)
            return Literal(option.source, default)
        fields = fields_named(self._project, name)
        if len(fields) == 1:
            source, value = fields[0]
            return self._value_of(value, _Place(source, value, None, place.at(value).steps))
        in_configs(self._project, name, self._value)
        raise CannotPatch(
            f"where {name} of {place.shown} comes from is not known; {self._name} should come to "
            f"{self._value}"
        )

    def _of_self(self, name: str, place: _Place) -> _Value | None:
        """An attribute that the class sets once, takes in `__init__`, or has."""
        owner, own = place.owner, m.Attribute(m.Name("self"), m.Name(name))
        if owner is None:
            return None
        values = [
            each.value
            for each in place.source.find(cst.Assign, cst.AnnAssign)
            if any(m.matches(target, own) for target in targets_of(each))
            and enclosing(place.source, each, cst.ClassDef) is owner
        ]
        if len(values) == 1 and values[0] is not None:
            return values[0], place.at(values[0])
        for each in owner.body.body if not values else ():
            init = isinstance(each, cst.FunctionDef) and each.name.value == "__init__"
            if init and param_of(each, name) is not None:  # type: ignore[arg-type]
                return self._of_parameter(name, each, place.at(each))  # type: ignore[arg-type]
        for statement in owner.body.body if not values else ():
            for inner in getattr(statement, "body", ()):
                if any(m.matches(target, m.Name(name)) for target in targets_of(inner)):
                    return inner.value, place.at(inner.value)
        return None

    # Dicts.

    def _entry(self, node: cst.BaseExpression, key: str, place: _Place) -> Literal | Missing:
        """The entry of a dict that an expression stands for."""
        if is_dict(node):
            value = entry_of(node, key)
            if value is not None:
                return self._value_of(value, place.at(value))
            return Missing(place.source, node)
        if isinstance(node, cst.Call) and place.source.text(node.func) in ("vars", "asdict"):
            return self._of_attribute(node.args[0].value, key, place)
        inner = key_of(node) if isinstance(node, cst.Subscript) else None
        if inner is not None and isinstance(node.value, cst.Name):  # type: ignore[attr-defined]
            for value, where in self._values(node.value.value, place):  # type: ignore[attr-defined]
                held = entry_of(value, inner)
                if held is not None:
                    return self._entry(held, key, where)
        if isinstance(node, cst.Name):
            found = self._entry_of_name(node.value, key, place)
            if found is not None:
                return found
        in_configs(self._project, key, self._value)
        raise CannotPatch(f"what `{place.source.text(node)}` of {place.shown} holds is not known")

    def _entry_of_name(self, name: str, key: str, place: _Place) -> Literal | Missing | None:
        for value in entries_set(place.source, name, key):
            return self._value_of(value, place.at(value))
        function = place.function
        star = function.params.star_kwarg if function is not None else None
        if function is not None and m.matches(star, m.Param(m.Name(name))):  # type: ignore[arg-type]
            for site in self._callers(function, place):
                passed = passed_as(site.call, key)
                if passed is not None:
                    return self._value_of(passed, place.of(site, passed))
                for spread in spread_in(site.call):
                    return self._entry(spread, key, place.of(site, spread))
                return Missing(site.source, site.call)
        for value, where in self._values(name, place):
            return self._entry(value, key, where)
        return None
