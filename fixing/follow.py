"""Follows an argument's value to the literal that decides it: through names, parameters, imports,
data classes, dicts and command line options."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..advisors.code.method import names_of
from .nodes import (
    assigned_to,
    calls_of,
    defaults_of,
    entries_set,
    entry_of,
    import_of,
    is_dict,
    last_name,
    passed_as,
    passed_for,
    sets,
    spread_in,
    text_of,
)
from .options import OptionGiven, click_option, default_of, fields_named, in_configs, option_named
from .project import CannotPatch, Project, Source
from .sites import Site, site_at

MAX_STEPS = 24
_CASTS = ("int", "bool", "float", "str")
_OPTIONS = ("typer.Option", "Option", "Field", "pydantic.Field")
_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
# What may stand in a value that no option decides, besides numbers.
_OF_THE_HOST = ("os", "multiprocessing", "psutil", "torch", "len", "min", "max", *_CASTS)


class Literal(NamedTuple):
    """The expression to replace; where it is a text, the new value is one too."""

    source: Source
    node: ast.expr


class Missing(NamedTuple):
    """The value is not given: it would be added to this call (or dict)."""

    source: Source
    node: ast.AST


@dataclass(frozen=True)
class _Place:
    """An expression, and where it stands; `site` is the call whose callers are known."""

    source: Source
    node: Any
    site: Site | None = None
    steps: int = 0

    def at(self, node: ast.AST, source: Source | None = None) -> _Place:
        if self.steps >= MAX_STEPS:
            raise CannotPatch("the value is passed on too often to be followed")
        site = self.site if source in (None, self.source) else None
        return _Place(source or self.source, node, site, self.steps + 1)

    def of(self, site: Site, node: ast.AST) -> _Place:
        return _Place(site.source, node, site, self.at(node).steps)

    @property
    def function(self) -> ast.FunctionDef | None:
        return self.source.enclosing(self.node, ast.FunctionDef)

    @property
    def owner(self) -> ast.ClassDef | None:
        return self.source.enclosing(self.node, ast.ClassDef)

    @property
    def shown(self) -> str:
        return self.source.place(self.node)


class Follower:
    """Of one change: `name` is the argument, `value` the source of the new value."""

    def __init__(self, project: Project, name: str, value: str) -> None:
        self._project, self._name, self._value = project, name, value

    def follow(self, site: Site, expression: ast.expr) -> Literal:
        """The literal that this argument of a call comes from. Raises CannotPatch, OptionGiven."""
        return self._value_of(_Place(site.source, expression, site))

    def entry(self, site: Site, keywords: ast.expr) -> Literal | Missing:
        """The entry of this name in what `**keywords` stands for. Raises CannotPatch."""
        return self._entry(self._name, _Place(site.source, keywords, site))

    # Expressions.

    def _value_of(self, place: _Place) -> Literal:
        match place.node:
            case ast.Call():
                return self._of_call(place)
            case ast.Name(name):
                return self._of_name(name, place)
            case ast.Attribute(held, name):
                return self._of_attribute(held, name, place)
            case ast.Subscript(held, ast.Constant(str(key))):
                found = self._entry(key, place.at(held))
                if isinstance(found, Literal):
                    return found
                raise CannotPatch(f"{place.shown} has no entry {key!r} to change")
        return self._computed(place)

    def _computed(self, place: _Place) -> Literal:
        """A value that only numbers and the host decide is replaced as a whole."""
        if names_of(place.node) <= {*_OF_THE_HOST}:
            return Literal(place.source, place.node)
        raise CannotPatch(
            f"{self._name} is computed at {place.shown}: `{place.source.shown(place.node)}`; "
            f"it should come to {self._value}"
        )

    def _of_call(self, place: _Place) -> Literal:
        node = place.node
        name, given = place.source.shown(node.func), [*node.args]
        given += [each.value for each in node.keywords]
        text = text_of(given[-1] if name == "getattr" else given[0]) if given else None
        if name in _CASTS and len(given) == 1:
            return self._value_of(place.at(given[0]))
        if name == "getattr" and len(given) == 2 and text is not None:
            return self._of_attribute(given[0], text, place)
        if name in _ENVIRONMENT and text is not None:
            raise OptionGiven(
                f"{place.shown} takes it from the environment: set {text}={self._value}"
            )
        if isinstance(node.func, ast.Attribute) and name.endswith(".get") and text is not None:
            found = self._entry(text, place.at(node.func.value))
            if isinstance(found, Literal):
                return found
            if len(given) > 1:
                return self._value_of(place.at(given[1]))
        default = passed_as(node, "default") if last_name(node.func) == "field" else None
        if name in _OPTIONS and given:
            default = given[0]
        if default is not None:
            return self._value_of(place.at(default))
        return self._computed(place)

    # Names.

    def _of_name(self, name: str, place: _Place) -> Literal:
        for value in self._values(name, place):
            return self._value_of(value)
        raise CannotPatch(f"where {name} of {place.shown} comes from is not known")

    def _values(self, name: str, place: _Place) -> Iterator[_Place]:
        """What this name is bound to: in the function, by its caller, in the module, by import."""
        function = place.function
        while function is not None:
            found = self._only(assigned_to(place.source, name, function), name, place)
            if found is not None:
                yield found
                return
            if name in defaults_of(function):
                yield self._of_parameter(name, function, place)
                return
            function = place.source.enclosing(function, ast.FunctionDef)
        found = self._only(assigned_to(place.source, name, None), name, place)
        if found is not None:
            yield found
            return
        imported = import_of(place.source, name)
        if imported is not None and imported[1]:
            other = self._project.module(imported[0], place.source)
            if other is not None:
                yield from self._values(imported[1], place.at(other.tree, other))

    @staticmethod
    def _only(found: list[ast.expr], name: str, place: _Place) -> _Place | None:
        if len(found) > 1:
            again = place.source.place(found[1])
            raise CannotPatch(f"{again} sets {name} again: change it there")
        return place.at(found[0]) if found else None

    def _of_parameter(self, name: str, function: ast.FunctionDef, place: _Place) -> _Place:
        """What the caller passes, else the default. Raises CannotPatch."""
        option = click_option(place.source, function, name)
        if option is not None:
            default = default_of(self._project, place.source, option, self._value)
            return place.at(default)
        for site in self._callers(function, place):
            value = passed_for(site.call, function, name)
            if value is not None:
                return place.of(site, value)
            for spread in spread_in(site.call):
                found = self._entry(name, place.of(site, spread))
                if isinstance(found, Literal):
                    return place.at(found.node, found.source)
        held = defaults_of(function)[name]
        if held is None:
            shown = f"{function.name} of {place.source.place(function)}"
            raise CannotPatch(f"what {name} of {shown} is given is not known")
        return place.at(held)

    def _callers(self, function: ast.FunctionDef, place: _Place) -> Iterator[Site]:
        """The call of this function that led to the loader, else the only one in the project."""
        site = place.site
        if (
            site is not None
            and site.outer
            and (site.source.enclosing(site.call, ast.FunctionDef) is function)
        ):
            yield site_at(self._project, site.outer)
            return
        name, owner = function.name, place.source.enclosing(function, ast.ClassDef)
        if name == "__init__" and owner is not None:
            name = owner.name
        found = calls_of(self._project, name)
        if len(found) > 1:
            raise CannotPatch(f"{name} is called in {len(found)} places, with values of their own")
        yield from found

    # Attributes.

    def _of_attribute(self, held: ast.expr, name: str, place: _Place) -> Literal:
        if isinstance(held, ast.Name):
            imported = import_of(place.source, held.id)
            dotted = ".".join(part for part in imported or () if part)
            other = self._project.module(dotted, place.source) if imported is not None else None
            if other is not None:
                return self._of_name(name, place.at(other.tree, other))
        if ast.unparse(held) in ("self", "self.hparams"):
            found = self._of_self(name, place)
            if found is not None:
                return self._value_of(found)
        option = option_named(self._project, name)
        if option is not None:
            default = default_of(self._project, option.source, option.call, self._value)
            return Literal(option.source, default)
        fields = fields_named(self._project, name)
        if len(fields) == 1:
            source, value = fields[0]
            return self._value_of(_Place(source, value, None, place.at(value).steps))
        in_configs(self._project, name, self._value)
        raise CannotPatch(
            f"where {name} of {place.shown} comes from is not known; {self._name} should come to "
            f"{self._value}"
        )

    def _of_self(self, name: str, place: _Place) -> _Place | None:
        """An attribute that the class sets once, takes in `__init__`, or has."""
        owner = place.owner
        if owner is None:
            return None
        values = [
            each.value
            for each in place.source.find(ast.Assign, ast.AnnAssign)
            if sets(each, name, of="self") and place.source.enclosing(each, ast.ClassDef) is owner
        ]
        if len(values) == 1 and values[0] is not None:
            return place.at(values[0])
        for each in owner.body if not values else ():
            match each:
                case ast.FunctionDef("__init__") if name in defaults_of(each):
                    return self._of_parameter(name, each, place.at(each))
        for each in owner.body if not values else ():
            if sets(each, name):
                return place.at(each.value)  # type: ignore[attr-defined]
        return None

    # Dicts.

    def _entry(self, key: str, place: _Place) -> Literal | Missing:
        """The entry of a dict that an expression stands for."""
        if is_dict(place.node):
            value = entry_of(place.node, key)
            if value is not None:
                return self._value_of(place.at(value))
            return Missing(place.source, place.node)
        match place.node:
            case ast.Call(func, [held, *_]) if ast.unparse(func) in ("vars", "asdict"):
                return self._of_attribute(held, key, place)
            case ast.Subscript(ast.Name(name), ast.Constant(str(inner))):
                for where in self._values(name, place):
                    entry = entry_of(where.node, inner)
                    if entry is not None:
                        return self._entry(key, where.at(entry))
            case ast.Name(name):
                found = self._entry_of_name(name, key, place)
                if found is not None:
                    return found
        in_configs(self._project, key, self._value)
        shown = place.source.shown(place.node)
        raise CannotPatch(f"what `{shown}` of {place.shown} holds is not known")

    def _entry_of_name(self, name: str, key: str, place: _Place) -> Literal | Missing | None:
        for value in entries_set(place.source, name, key):
            return self._value_of(place.at(value))
        function = place.function
        star = function.args.kwarg if function is not None else None
        if function is not None and star is not None and star.arg == name:
            for site in self._callers(function, place):
                passed = passed_as(site.call, key)
                if passed is not None:
                    return self._value_of(place.of(site, passed))
                for spread in spread_in(site.call):
                    return self._entry(key, place.of(site, spread))
                return Missing(site.source, site.call)
        for where in self._values(name, place):
            return self._entry(key, where)
        return None
