"""Looking at objects without running code of theirs: no `__getattr__`, property, `__class__`,
`__len__`, metaclass.

Everything asked of an object goes to its type, and everything asked of a type to `type` itself,
past whatever a class or a metaclass may have put in between. What cannot be had this way is not
had.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .inline_vars import inline_vars

_mro_of = vars(type)["__mro__"].__get__
_vars_of = vars(type)["__dict__"].__get__
_name_of = vars(type)["__name__"].__get__
_qualname_of = vars(type)["__qualname__"].__get__
_module_of = vars(type)["__module__"].__get__

MAX_NAME = 200
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def mro(cls: type) -> tuple[type, ...]:
    """The class and its bases, in the order in which Python looks at them."""
    found: tuple[type, ...] = _mro_of(cls)
    return found


def is_one_of(cls: Any, kinds: Iterable[Any]) -> bool:
    """Whether this very class is among them: `in` would ask a metaclass's `__eq__`, a set its
    `__hash__`."""
    for kind in kinds:  # noqa: SIM110  a generator for `any` costs more than the looking
        if cls is kind:
            return True
    return False


def inherits(cls: type, base: Any) -> bool:
    """Whether `base` is among the class's bases, by identity: no `__subclasscheck__` is asked."""
    return is_one_of(base, mro(cls))


def in_class(cls: type, name: str) -> Any:
    """What the class, or the first base that has it, holds under this name, unbound; None where
    none does."""
    for base in mro(cls):
        held = _vars_of(base)
        if name in held:
            return held[name]
    return None


def instance_vars(value: Any) -> dict[str, Any]:
    """A copy of the object's own attributes; empty for one with slots only or with a `__dict__` of
    its own making."""
    # A property named `__dict__` would be the user's code; the interpreter's own is a descriptor
    # written in C.
    held = in_class(type(value), "__dict__")
    if type(held) is not types.GetSetDescriptorType:
        return {}
    inline = inline_vars(value)
    if inline is not None:
        return inline
    found = held.__get__(value)
    if type(found) is not dict:
        return {}
    return {name: item for name, item in found.copy().items() if type(name) is str}


def class_name(cls: type) -> str:
    """'package.module.Class'; without the module for builtins and for the script itself."""
    return _qualified(_module_of(cls), _qualname_of(cls))


def defined_in(value: types.FunctionType | type) -> dict[str, str]:
    """Where a class or function is defined: the file of its module, and its qualified name there;
    {} where it is not known. Unlike its module's name, they are the same whether the module was
    imported or run as a script."""
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
    """What code would call it: the name of a function or class, for anything else of its class."""
    value = underlying(value)
    if is_one_of(type(value), _FUNCTIONS):
        return str(value.__name__)[:MAX_NAME]
    return str(_name_of(value if inherits(type(value), type) else type(value)))[:MAX_NAME]


def qualified_name(value: Any) -> str:
    """As `class_name`, of a function or class itself and of anything else's class; 'partial(f)' for
    a partial."""
    if type(value) is functools.partial:
        return f"partial({qualified_name(value.func)})"[:MAX_NAME]
    value = underlying(value)
    if is_one_of(type(value), _FUNCTIONS):
        return _qualified(getattr(value, "__module__", None), value.__qualname__)
    return class_name(value if inherits(type(value), type) else type(value))


def underlying(value: Any) -> Any:
    """The function in a bound method, static method or partial; the value itself where it is none
    of them."""
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
    """Whether it can be called, as far as its type tells."""
    return in_class(type(value), "__call__") is not None


def loaded(module: str) -> dict[str, Any]:
    """What an imported module holds; {} where it is not imported. Nothing is ever imported for the
    sake of a look."""
    found = sys.modules.get(module)
    return vars(found) if found is not None and inherits(type(found), types.ModuleType) else {}


def _qualified(module: Any, qualname: Any) -> str:
    if type(qualname) is not str:
        return "unknown"
    alone = type(module) is not str or module in ("builtins", "__main__")
    return (qualname if alone else f"{module}.{qualname}")[:MAX_NAME]


@contextmanager
def unseen() -> Iterator[None]:
    """Within, no TorchFunctionMode, TorchDispatchMode or tensor subclass sees what is asked of a
    tensor."""
    import torch

    with torch._C.DisableTorchFunction():
        guard = torch._C._DisableTorchDispatch()
        try:
            yield
        finally:
            del guard


def plain_tensor(value: Any) -> bool:
    """Whether it is a tensor that answers by itself: torch's own class, or a subclass that keeps
    torch's dispatch."""
    import torch

    if type(value) is torch.Tensor:
        return True
    name = "__torch_dispatch__"
    return inherits(type(value), torch.Tensor) and in_class(type(value), name) is in_class(
        torch.Tensor, name
    )
