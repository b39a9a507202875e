"""What stands in the place of a method of tensors while calls of it are noticed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from ..guard.static_access import inherits, plain_tensor


# Has the documentation of the method it stands for. In sets and dictionaries the two are one: there subclasses look up
# what they are asked about, be it the method itself or, for a module imported meanwhile, what stood for it.
class Method:
    __slots__ = ("__doc__", "_original")

    def __init__(self, original: Any) -> None:
        self.__doc__ = original.__doc__
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self if tensor is None else MethodType(self, tensor)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)


def as_asked(original: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The method to call. Classes that are asked about calls are told of the method itself: C would look it up by its
    name, and tell them of what stands for it."""
    import torch

    if not torch._C._has_torch_function(arguments):
        return original  # type: ignore[no-any-return]
    tensors = tuple(each for each in arguments if inherits(type(each), torch.Tensor))
    return functools.partial(torch.overrides.handle_torch_function, original, tensors)


def device_of(tensor: Any) -> str:
    """The kind of device it lies on; "" for what does not answer by itself."""
    return str(tensor.device.type) if plain_tensor(tensor) else ""
