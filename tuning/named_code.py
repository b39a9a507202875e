"""What code names outside of the objects it is given: globals, closures, attributes of classes and
modules.

Followed from the methods by which a data set or sampler is asked, through the functions that they
name, as far as the code is the user's: an installed package is taken not to change its globals.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..profiler.guard.static_access import (
    in_class,
    inherits,
    instance_vars,
    is_one_of,
    mro,
    short_name,
    underlying,
)
from ..profiler.guard.users_code import of_user

# How torch asks a data set, a sampler, a transform or a collate function.
ENTRIES = ("__getitem__", "__getitems__", "__call__", "forward", "__iter__", "__next__")
ENVIRONMENT = ("environ", "getenv")
MOST = 200  # functions followed
WRITE_MODES = ("w", "wb", "w+", "wb+", "a", "ab", "a+", "ab+", "x", "xb", "r+", "rb+", "r+b")
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR")
_FUNCTIONS = (types.FunctionType, types.MethodType, staticmethod, classmethod, property)


class Names(NamedTuple):
    """Names that code looks up in one namespace, and how a sentence calls them ("the global ")."""

    namespace: Mapping[str, Any]
    names: tuple[str, ...]
    about: str


class NamedCode:
    """Met are objects; given are the names that their code uses, each once."""

    def __init__(self) -> None:
        self.prints: str | None = None  # a function that prints
        self.writes: str | None = None  # and one that seems to open files to write to them
        self.reads_environment = False
        self._functions: list[types.FunctionType] = []
        self._done = 0
        self._names: dict[str, None] = {}  # of attributes, in all functions so far
        self._classes: list[type] = []  # the user's
        self._met: set[int] = set()
        self._given: set[tuple[int, str]] = set()
        self._cells: list[tuple[str, Any]] = []

    def met(self, value: Any) -> None:
        """An object that is reached from the roots."""
        if type(value) is types.ModuleType:
            return
        if type(value) is types.FunctionType or type(value) is types.MethodType:
            self._follow(value)
        elif inherits(type(value), type):
            self._meet_class(value)
        else:
            self._meet_class(type(value))

    def names(self) -> Iterator[Names]:
        """Those that were not given before."""
        while self._done < len(self._functions):
            function = self._functions[self._done]
            self._done += 1
            yield from self._names_of(function)
        for cls in tuple(self._classes):
            yield from self._class_names(cls)

    def cells(self) -> list[tuple[str, Any]]:
        """(name, cell) of variables of enclosing functions, those that were not given before."""
        found, self._cells = self._cells, []
        return found

    def _follow(self, value: Any) -> None:
        function = underlying(value.fget if type(value) is property else value)
        if type(function) is not types.FunctionType or len(self._functions) >= MOST:
            return
        if of_user(function.__code__.co_filename) and not any(
            function is each for each in self._functions
        ):
            self._functions.append(function)
            wrapped = instance_vars(function).get("__wrapped__")
            if wrapped is not None:
                self._follow(wrapped)

    def _meet_class(self, cls: type) -> None:
        if id(cls) in self._met:
            return
        self._met.add(id(cls))
        for name in ENTRIES:
            held = in_class(cls, name)
            if is_one_of(type(held), _FUNCTIONS):
                self._follow(held)
        if any(_of_user(each) for each in mro(cls)):
            self._classes.append(cls)
            for name in self._names:
                self._follow_method(cls, name)

    def _follow_method(self, cls: type, name: str) -> None:
        held = in_class(cls, name)
        if is_one_of(type(held), _FUNCTIONS):
            self._follow(held)

    def _names_of(self, function: types.FunctionType) -> Iterator[Names]:
        attributes, named = _named(function.__code__)
        scope = function.__globals__
        if "print" in named and "print" not in scope:
            self.prints = self.prints or function.__qualname__
        if ("open" in named or "open" in attributes) and any(
            each in WRITE_MODES for each in _texts(function.__code__)
        ):
            self.writes = self.writes or function.__qualname__
        self.reads_environment |= any(name in attributes or name in named for name in ENVIRONMENT)
        self._cells += zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        fresh = [name for name in attributes if name not in self._names]
        self._names.update(attributes)
        for cls in tuple(self._classes):
            for name in fresh:
                self._follow_method(cls, name)
        yield from self._new(
            Names(scope, tuple(name for name in named if name in scope), "the global ")
        )
        for name in named:
            value = scope.get(name)
            if type(value) is types.ModuleType:
                yield from self._module_names(value, attributes)
            elif value is not None:
                self.met(value)

    def _module_names(self, module: types.ModuleType, named: Mapping[str, None]) -> Iterator[Names]:
        held = vars(module)
        if not _users_module(module):
            return
        yield from self._new(
            Names(held, tuple(name for name in named if name in held), f"{module.__name__}.")
        )
        for name in named:
            if name in held and type(held[name]) is not types.ModuleType:
                self.met(held[name])

    def _class_names(self, cls: type) -> Iterator[Names]:
        for base in mro(cls):
            if _of_user(base):
                body = vars(type)["__dict__"].__get__(base)
                names = tuple(
                    name
                    for name in self._names
                    if name in body and not is_one_of(type(body[name]), _FUNCTIONS)
                )
                yield from self._new(Names(body, names, f"{short_name(base)}."), base)

    def _new(self, found: Names, owner: Any = None) -> Iterator[Names]:
        """`owner`: whose namespace it is, where that is another object each time it is asked
        for."""
        key = id(found.namespace if owner is None else owner)
        fresh = tuple(name for name in found.names if (key, name) not in self._given)
        self._given |= {(key, name) for name in fresh}
        if fresh:
            yield found._replace(names=fresh)


def _named(code: types.CodeType) -> tuple[dict[str, None], dict[str, None]]:
    """The names of attributes and of globals that code uses, that of functions inside it too."""
    attributes: dict[str, None] = {}
    named: dict[str, None] = {}
    for each in dis.get_instructions(code):
        if each.opname in _GLOBAL:
            named[each.argval] = None
        elif each.opname in _ATTRIBUTE:
            attributes[each.argval] = None
    for constant in code.co_consts:
        if type(constant) is types.CodeType:  # a comprehension, a lambda
            for found, inside in zip((attributes, named), _named(constant), strict=True):
                found.update(inside)
    return attributes, named


def _texts(code: types.CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if type(constant) is str:
            yield constant
        elif type(constant) is types.CodeType:
            yield from _texts(constant)


def _of_user(cls: type) -> bool:
    """Whether a class is written in the user's code."""
    body = vars(type)["__dict__"].__get__(cls)
    functions = (
        each for each in map(underlying, body.values()) if type(each) is types.FunctionType
    )
    first = next(functions, None)
    if first is not None:
        return of_user(first.__code__.co_filename)
    module = sys.modules.get(vars(type)["__module__"].__get__(cls))  # a class of settings alone
    return type(module) is types.ModuleType and _users_module(module)


def _users_module(module: types.ModuleType) -> bool:
    file = vars(module).get("__file__")
    return module.__name__ == "__main__" or (type(file) is str and of_user(file))
