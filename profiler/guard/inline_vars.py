"""An object's attributes without asking for its `__dict__`.

In Python 3.11 and 3.12 an object keeps its attributes in its own memory until somebody asks for its
`__dict__`; from then on the interpreter finds them on a slower way. A data set is asked for
`self.something` for each sample (up to 50 ns more, measured), so looking at one must not do that.
The names are guessed from what the class's code mentions, and the garbage collector says whether
the values found are all there are.
"""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

NEEDED = (3, 11) <= sys.version_info[:2] <= (3, 12)

MAX_NAMES = 4096
MAX_CLASSES = 256
_WRAPPERS = (classmethod, staticmethod)


def inline_vars(value: Any) -> dict[str, Any] | None:
    """Its attributes; None where they cannot be had this way, or `__dict__` does no harm. Runs no
    code of its own."""
    if not NEEDED:
        return None
    kind = type(value)
    referents = list(map(id, gc.get_referents(value)))
    order = {identity: -at for at, identity in enumerate(reversed(referents))}
    with suppress(ValueError):
        referents.remove(id(kind))  # every object of a class made in Python refers to it
    referents.sort()
    known = _names_of(kind)
    for names in (known.usual, known.all):
        found = _found(value, names)
        if sorted(map(id, found.values())) == referents:
            known.usual = list(found)
            return dict(
                sorted(found.items(), key=lambda item: order[id(item[1])])
            )  # as they were set
    return None


def _found(value: Any, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = object.__getattribute__(value, name)
        except AttributeError:
            continue
    return found


class _Names:
    """Of a class: all names that its objects' attributes may have, and those that one of them
    had."""

    def __init__(self, kind: type, names: list[str]) -> None:
        self.kind = weakref.ref(kind)
        self.all = names
        self.usual: list[str] = []


# By the class's identity, for hashing one may run a metaclass's code. Where a class has changed
# since, the garbage collector's list does not fit.
_known: dict[int, _Names] = {}


def _names_of(kind: type) -> _Names:
    """Names its objects' attributes may have. What is in the class too is left for `__dict__` to
    tell."""
    known = _known.get(id(kind))
    if known is not None and known.kind() is kind:
        return known
    bodies = [vars(type)["__dict__"].__get__(base) for base in vars(type)["__mro__"].__get__(kind)]
    names = [
        name
        for name in dict.fromkeys(_mentioned(bodies))
        if not any(name in body for body in bodies)
    ]
    if len(_known) >= MAX_CLASSES:
        _known.clear()
    _known[id(kind)] = _Names(kind, names)
    return _known[id(kind)]


def _mentioned(bodies: list[Any]) -> Iterator[str]:
    codes = []
    for body in bodies:
        for held in body.values():
            inner = (
                held.__func__
                if type(held) in _WRAPPERS
                else held.fget
                if type(held) is property
                else held
            )
            if type(inner) is types.FunctionType:
                codes.append(inner.__code__)
    for _ in range(MAX_NAMES):
        if not codes:
            return
        code = codes.pop()
        yield from code.co_names
        codes += [part for part in code.co_consts if type(part) is types.CodeType]
