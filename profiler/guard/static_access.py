"""Looks at objects without running their code: no `__getattr__`, property, `__class__`, `__len__`
or metaclass.

Every question about an object goes to its type, and every question about a type to `type` itself,
bypassing overrides in classes and metaclasses. What cannot be found this way stays unknown.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import types
from collections import UserDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..base.torch_parts import names_used

_mro_of = vars(type)["__mro__"].__get__
_vars_of = vars(type)["__dict__"].__get__
_name_of = vars(type)["__name__"].__get__
_qualname_of = vars(type)["__qualname__"].__get__
_module_of = vars(type)["__module__"].__get__

MAX_NAME = 200
NUMBERS = (int, float, bool, complex)
PLAIN = (*NUMBERS, str, type(None))
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def mro(cls: type) -> tuple[type, ...]:
    """The class and its bases, in method resolution order."""
    found: tuple[type, ...] = _mro_of(cls)
    return found


def is_one_of(cls: Any, kinds: Iterable[Any]) -> bool:
    """Whether this very class is among them. `in` would call a metaclass's `__eq__`, and a set its
    `__hash__`."""
    for kind in kinds:  # noqa: SIM110  a generator for `any` costs more than the loop
        if cls is kind:
            return True
    return False


def inherits(cls: type, base: Any) -> bool:
    """Whether `base` is among the class's bases, by identity, without `__subclasscheck__`."""
    return is_one_of(base, mro(cls))


def in_class(cls: type, name: str) -> Any:
    """The unbound attribute of this name in the class or its first base that has one, else None."""
    for base in mro(cls):
        held = _vars_of(base)
        if name in held:
            return held[name]
    return None


def instance_vars(value: Any) -> dict[str, Any]:
    """A copy of the object's own attributes. Empty if it has only slots or its own `__dict__`."""
    # A property named `__dict__` would be the user's code; the interpreter's is a C descriptor.
    held = in_class(type(value), "__dict__")
    if type(held) is not types.GetSetDescriptorType:
        return {}
    old = sys.version_info < (3, 13)
    if old and (inline := _inline_vars(value)) is not None:
        return inline
    found = held.__get__(value)
    if type(found) is not dict:
        return {}
    if old and found:
        # Asking for `__dict__` made a dict that shares its keys. There the interpreter does not
        # find attributes by position: each access takes 20 ns more. Taking an item out and putting
        # it back ends the sharing. This is one call in C: no other code sees the item missing.
        found.update(map(dict.popitem, (found,)))
    return {name: item for name, item in found.copy().items() if type(name) is str}


def _inline_vars(value: Any) -> dict[str, Any] | None:
    """Its attributes, by the names in the code of its class, if the garbage collector knows no
    others. Before Python 3.13, asking for `__dict__` makes each later access to an attribute
    slower: 0.5 µs per batch of 100 samples, also without shared keys (benchmarks/overhead.py)."""
    kind, found = type(value), dict[str, Any]()
    referents = gc.get_referents(value)  # in the order in which they were set
    if [*map(type, referents[:-1])] == [dict]:
        return None  # somebody has asked for it
    held = (underlying(each) for base in mro(kind) for each in _vars_of(base).values())
    functions = (each for each in held if type(each) is types.FunctionType)
    for name in sorted(names_used(*functions)):
        if in_class(kind, name) is None:
            with suppress(AttributeError):
                found[name] = object.__getattribute__(value, name)
    known = [*map(id, referents)]
    if sorted(map(id, (kind, *found.values()))) != sorted(known):
        return None
    return dict(sorted(found.items(), key=lambda item: known.index(id(item[1]))))


def contents(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """(key or number, item) of a dict, UserDict, list or tuple, or a subclass, read by the base
    class's own methods. None for any other object."""
    kind = type(value)
    if inherits(kind, UserDict):
        value = instance_vars(value).get("data")
        kind = type(value)
    if inherits(kind, dict):
        return dict.items(value)
    for base in (list, tuple):
        if inherits(kind, base):
            return enumerate(base.__iter__(value))
    return None


def class_name(cls: type) -> str:
    """'package.module.Class', without the module for builtins and the script itself."""
    return _qualified(_module_of(cls), _qualname_of(cls))


def defined_in(value: types.FunctionType | type) -> dict[str, str]:
    """The file and qualified name of a class or function, {} if unknown. Unlike the module's name,
    they are the same whether the module was imported or run as a script."""
    function = type(value) is types.FunctionType
    module, qualname = (
        (value.__module__, value.__qualname__)
        if function
        else (_module_of(value), _qualname_of(value))
    )
    file = loaded(module).get("__file__") if type(module) is str else None
    if function and type(file) is not str:
        file = value.__code__.co_filename  # type: ignore[union-attr]
    if type(file) is not str or type(qualname) is not str:
        return {}
    return {"module_file": os.path.abspath(file), "qualname": qualname[:MAX_NAME]}


def short_name(value: Any) -> str:
    """The name of a function or class; for any other object, the name of its class."""
    value = underlying(value)
    if is_one_of(type(value), _FUNCTIONS):
        return str(value.__name__)[:MAX_NAME]
    return str(_name_of(_own_class(value)))[:MAX_NAME]


def qualified_name(value: Any) -> str:
    """Like `class_name`, of a function or class itself, or of any other object's class. A partial
    is 'partial(f)'."""
    if type(value) is functools.partial:
        return f"partial({qualified_name(value.func)})"[:MAX_NAME]
    value = underlying(value)
    if is_one_of(type(value), _FUNCTIONS):
        return _qualified(getattr(value, "__module__", None), value.__qualname__)
    return class_name(_own_class(value))


def _own_class(value: Any) -> type:
    """A class itself, the class of any other object."""
    found: type = value if inherits(type(value), type) else type(value)
    return found


def underlying(value: Any) -> Any:
    """The function behind a bound method, static method or partial; any other value unchanged."""
    for _ in range(8):
        kind = type(value)
        if kind is functools.partial:
            value = value.func
        elif is_one_of(kind, (types.MethodType, staticmethod, classmethod)):
            value = value.__func__
        else:
            break
    return value


def is_callable(value: Any) -> bool:
    """Whether its type defines `__call__`."""
    return in_class(type(value), "__call__") is not None


def loaded(module: str) -> dict[str, Any]:
    """The contents of an imported module, {} if it is not imported. Imports nothing."""
    found = sys.modules.get(module)
    return vars(found) if found is not None and inherits(type(found), types.ModuleType) else {}


def _qualified(module: Any, qualname: Any) -> str:
    if type(qualname) is not str:
        return "unknown"
    alone = type(module) is not str or module in ("builtins", "__main__")
    return (qualname if alone else f"{module}.{qualname}")[:MAX_NAME]


@contextmanager
def unseen() -> Iterator[None]:
    """Hides operations on tensors from torch's modes and from tensor subclasses."""
    import torch

    with torch._C.DisableTorchFunction():
        guard = torch._C._DisableTorchDispatch()
        try:
            yield
        finally:
            del guard


def plain_tensor(value: Any) -> bool:
    """Whether it is a tensor of torch's own class, or of a subclass that keeps torch's dispatch."""
    import torch

    if type(value) is torch.Tensor:
        return True
    name = "__torch_dispatch__"
    return inherits(type(value), torch.Tensor) and in_class(type(value), name) is in_class(
        torch.Tensor, name
    )
