"""The names that code uses outside its objects: globals, closures, attributes of classes and
modules.

It follows the methods by which torch asks a data set or sampler, and the functions that they name,
within the user's code. Installed packages are assumed not to change their globals.
"""

import dis
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...profiler.base.torch_parts import codes
from ...profiler.guard.static_access import (
    in_class,
    inherits,
    instance_vars,
    is_one_of,
    mro,
    short_name,
    underlying,
)
from ...profiler.guard.users_code import of_user

# How torch asks a data set, a sampler, a transform or a collate function.
ENTRIES = ("__getitem__", "__getitems__", "__call__", "forward", "__iter__", "__next__")
ENVIRONMENT = {"environ", "getenv"}
MOST = 200  # functions followed
WRITE_MODES = {"w", "wb", "w+", "wb+", "a", "ab", "a+", "ab+", "x", "xb", "r+", "rb+", "r+b"}
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR")
_FUNCTIONS = (types.FunctionType, types.MethodType, staticmethod, classmethod, property)


# Names that code looks up in a namespace, and their prefix in a sentence ("the global ").
Names = tuple[Mapping[str, Any], tuple[str, ...], str]


class NamedCode:
    """The names that the code of some objects uses; each is given once."""

    def __init__(self) -> None:
        self.prints: str | None = None  # a function that prints
        self.writes: str | None = None  # one that seems to open files to write to them
        self.reads_environment = False
        self._functions: list[types.FunctionType] = []
        self._done = 0
        self._attributes: dict[str, None] = {}  # that all functions so far name
        self._classes: list[type] = []  # the user's
        self._met: set[int] = set()
        self._given: set[tuple[int, str]] = set()
        self.cells: list[tuple[str, Any]] = []  # new variables of enclosing functions

    def met(self, value: Any) -> None:
        """Add an object that was reached from the roots."""
        kind = type(value)
        if kind is types.FunctionType or kind is types.MethodType:
            self._follow(value)
        elif kind is not types.ModuleType:
            self._meet_class(value if inherits(kind, type) else kind)

    def names(self) -> Iterator[Names]:
        """The new ones."""
        while self._done < len(self._functions):
            self._done += 1
            yield from self._names_of(self._functions[self._done - 1])
        for cls in tuple(self._classes):
            for base in filter(_of_user, mro(cls)):
                body = _body(base)
                named = (
                    name
                    for name in self._attributes
                    if name in body and not is_one_of(type(body[name]), _FUNCTIONS)
                )
                yield from self._new(body, named, f"{short_name(base)}.", id(base))

    def _follow(self, value: Any) -> None:
        function = underlying(value.fget if type(value) is property else value)
        if (
            type(function) is types.FunctionType
            and len(self._functions) < MOST
            and of_user(function.__code__.co_filename)
            and not is_one_of(function, self._functions)
        ):
            self._functions.append(function)
            self._follow(instance_vars(function).get("__wrapped__"))

    def _meet_class(self, cls: type) -> None:
        if id(cls) in self._met:
            return
        self._met.add(id(cls))
        self._follow_methods(cls, ENTRIES)
        if any(map(_of_user, mro(cls))):
            self._classes.append(cls)
            self._follow_methods(cls, self._attributes)

    def _follow_methods(self, cls: type, names: Iterable[str]) -> None:
        for name in names:
            held = in_class(cls, name)
            if is_one_of(type(held), _FUNCTIONS):
                self._follow(held)

    def _names_of(self, function: types.FunctionType) -> Iterator[Names]:
        code, scope = function.__code__, function.__globals__
        attributes, named, texts = _used(code)
        if "print" in named and "print" not in scope:
            self.prints = self.prints or function.__qualname__
        if "open" in {*named, *attributes} and texts & WRITE_MODES:
            self.writes = self.writes or function.__qualname__
        self.reads_environment |= bool(ENVIRONMENT & {*named, *attributes})
        self.cells += zip(code.co_freevars, function.__closure__ or (), strict=True)
        fresh = [name for name in attributes if name not in self._attributes]
        self._attributes.update(attributes)
        for cls in tuple(self._classes):
            self._follow_methods(cls, fresh)
        yield from self._new(scope, (name for name in named if name in scope), "the global ")
        for value in map(scope.get, named):
            if type(value) is not types.ModuleType:
                self.met(value)
            elif _users_module(value):
                held = vars(value)
                inside = [name for name in attributes if name in held]
                yield from self._new(held, inside, f"{value.__name__}.")
                for name in inside:
                    self.met(held[name])

    def _new(
        self, namespace: Mapping[str, Any], names: Iterable[str], about: str, key: int = 0
    ) -> Iterator[Names]:
        """`key` identifies the namespace if it is a new object on each access."""
        key = key or id(namespace)
        fresh = tuple(name for name in names if (key, name) not in self._given)
        self._given.update((key, name) for name in fresh)
        if fresh:
            yield namespace, fresh, about


def _used(code: types.CodeType) -> tuple[dict[str, None], dict[str, None], set[str]]:
    """The names of attributes and of globals that code uses, and its texts."""
    attributes: dict[str, None] = {}
    named: dict[str, None] = {}
    texts: set[str] = set()
    for part in codes(code):
        texts.update(each for each in part.co_consts if type(each) is str)
        for each in dis.get_instructions(part):
            if each.opname in _GLOBAL:
                named[each.argval] = None
            elif each.opname in _ATTRIBUTE:
                attributes[each.argval] = None
    return attributes, named, texts


def _body(cls: type) -> Mapping[str, Any]:
    held: Mapping[str, Any] = vars(type)["__dict__"].__get__(cls)
    return held


def _of_user(cls: type) -> bool:
    """Whether a class is written in the user's code."""
    for each in map(underlying, _body(cls).values()):
        if type(each) is types.FunctionType:
            return of_user(each.__code__.co_filename)
    module = sys.modules.get(vars(type)["__module__"].__get__(cls))  # a class of settings alone
    return type(module) is types.ModuleType and _users_module(module)


def _users_module(module: types.ModuleType) -> bool:
    file = vars(module).get("__file__")
    return module.__name__ == "__main__" or (type(file) is str and of_user(file))
