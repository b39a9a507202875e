"""Follows an argument's value to the literal that decides it: through names, parameters, imports,
data classes, and options of argparse."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..advisors.code.method import names_of
from .nodes import (
    Site,
    assigned_to,
    calls_of,
    defaults_of,
    import_of,
    passed_for,
    sets,
    site_at,
    spread_in,
)
from .options import default_of, fields_named, option_named
from .project import CannotPatch, Project, Source

_CASTS = ("int", "bool", "float", "str")
# What may stand in a value that no option decides, besides numbers.
_OF_THE_HOST = ("os", "multiprocessing", "psutil", "torch", "len", "min", "max", *_CASTS)


@dataclass(frozen=True)
class Place:
    """An expression, and where it stands; `site` is the call whose callers are known."""

    source: Source
    node: Any
    site: Site | None = None

    def at(self, node: ast.AST, source: Source | None = None, site: Site | None = None) -> Place:
        """The next step, where only another source has another `site`."""
        if source in (None, self.source):
            site = site or self.site
        return Place(source or self.source, node, site)

    @property
    def shown(self) -> str:
        return self.source.place(self.node)


class Follower:
    """Of one change: `name` is the argument, `value` the source of the new value."""

    def __init__(self, project: Project, name: str, value: str) -> None:
        self._project, self._name, self._value = project, name, value

    # Expressions.

    def literal(self, place: Place) -> Place:
        """The literal that this expression comes from. Raises CannotPatch."""
        match place.node:
            case ast.Call(ast.Name(cast), [value], []) if cast in _CASTS:
                return self.literal(place.at(value))
            case ast.Name(name):
                return self._of_name(name, place)
            case ast.Attribute(held, name):
                return self._of_attribute(held, name, place)
        return self._computed(place)

    def _computed(self, place: Place) -> Place:
        """A value that only numbers and the host decide is replaced as a whole."""
        if names_of(place.node) <= {*_OF_THE_HOST} and "env" not in ast.unparse(place.node):
            return place
        raise CannotPatch(
            f"{self._name} is computed at {place.shown}: `{place.source.shown(place.node)}`; "
            f"it should come to {self._value}"
        )

    # Names.

    def _of_name(self, name: str, place: Place) -> Place:
        value = self._bound_to(name, place)
        if value is None:
            raise CannotPatch(f"where {name} of {place.shown} comes from is not known")
        return self.literal(value)

    def _bound_to(self, name: str, place: Place) -> Place | None:
        """What this name is bound to: in the function, by its caller, in the module, by import."""
        source = place.source
        outer = source.parents(place.node)
        for scope in (*(each for each in outer if isinstance(each, ast.FunctionDef)), None):
            found = assigned_to(source, name, scope)
            if len(found) > 1:
                again = source.place(found[1])
                raise CannotPatch(f"{again} sets {name} again: change it there")
            if found:
                return place.at(found[0])
            if scope is not None and name in defaults_of(scope):
                return self._of_parameter(name, scope, place)
        module, inner = import_of(source, name) or ("", "")
        other = self._project.module(module, source) if inner else None
        return self._bound_to(inner, place.at(other.tree, other)) if other is not None else None

    def _of_parameter(self, name: str, function: ast.FunctionDef, place: Place) -> Place:
        """What the caller passes, else the default. Raises CannotPatch."""
        for site in self._callers(function, place):
            value = passed_for(site.call, function, name)
            if value is not None:
                return place.at(value, site.source, site)
            if spread_in(site.call):
                raise CannotPatch(f"{site.source.place(site.call)} passes {name} in a dict")
        held = defaults_of(function)[name]
        if held is None:
            shown = f"{function.name} of {place.source.place(function)}"
            raise CannotPatch(f"what {name} of {shown} is given is not known")
        return place.at(held)

    def _callers(self, function: ast.FunctionDef, place: Place) -> list[Site]:
        """The call of this function that led to the loader, else the only one in the project."""
        site = place.site
        within = site.source.enclosing(site.call, ast.FunctionDef) if site is not None else None
        if site is not None and site.outer and within is function:
            return [site_at(self._project, site.outer)]
        name, owner = function.name, place.source.enclosing(function, ast.ClassDef)
        if name == "__init__" and owner is not None:
            name = owner.name
        found = calls_of(self._project, name)
        if len(found) > 1:
            raise CannotPatch(f"{name} is called in {len(found)} places, with values of their own")
        return found

    # Attributes.

    def _of_attribute(self, held: ast.expr, name: str, place: Place) -> Place:
        imported = import_of(place.source, getattr(held, "id", ""))
        if imported is not None:
            other = self._project.module(".".join(filter(None, imported)), place.source)
            if other is not None:
                return self._of_name(name, place.at(other.tree, other))
        if ast.unparse(held) in ("self", "self.hparams"):
            found = self._of_self(name, place)
            if found is not None:
                return self.literal(found)
        option = option_named(self._project, name)
        if option is not None:
            default = default_of(self._project, option, self._value)
            return place.at(default, option.source)
        fields = fields_named(self._project, name)
        if len(fields) == 1:
            source, value = fields[0]
            return self.literal(place.at(value, source))
        raise CannotPatch(
            f"where {name} of {place.shown} comes from is not known; {self._name} should come to "
            f"{self._value}"
        )

    def _of_self(self, name: str, place: Place) -> Place | None:
        """An attribute that the class sets once, takes in `__init__`, or has."""
        source, owner = place.source, place.source.enclosing(place.node, ast.ClassDef)
        values = [
            each.value
            for each in source.find(ast.Assign, ast.AnnAssign)
            if sets(each, f"self.{name}") and source.enclosing(each, ast.ClassDef) is owner
        ]
        if owner is None or values:
            return place.at(values[0]) if len(values) == 1 and values[0] is not None else None
        for each in owner.body:
            match each:
                case ast.FunctionDef("__init__") if name in defaults_of(each):
                    return self._of_parameter(name, each, place.at(each))
        held = (getattr(each, "value", None) for each in owner.body if sets(each, name))
        return next((place.at(value) for value in held if value is not None), None)
