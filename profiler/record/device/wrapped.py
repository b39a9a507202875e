"""Wraps methods of tensors while calls of them are noticed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...guard.static_access import inherits, plain_tensor
from ...native.form import hooks


class Wrapped:
    """The methods of `torch.Tensor` wrapped by one user of this class. They are attributes in front
    of the inherited C methods, and are deleted without a trace."""

    def __init__(self) -> None:
        self._methods: dict[str, Any] = {}

    def wrap(self, name: str, noticed: Callable[..., Any], on: bool) -> None:
        """While on, call `noticed(method, args, kwargs)` in the method's place. Other people's
        wrappers stay."""
        import torch

        original = getattr(torch.Tensor, name, None)
        if original is None or name in vars(torch.Tensor):
            return

        def call(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            return noticed(_as_asked(original, (*args, *kwargs.values())), args, kwargs)

        method = hooks.Noticing(original, torch._C._has_torch_function_variadic, call)
        method.on = on
        self._methods[name] = method
        setattr(torch.Tensor, name, method)

    def listen(self, on: bool) -> None:
        for method in self._methods.values():
            method.on = on

    def unwrap(self) -> None:
        import torch

        while self._methods:
            name, method = self._methods.popitem()
            if vars(torch.Tensor).get(name) is method:
                delattr(torch.Tensor, name)


def _as_asked(original: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The method to call. Classes with `__torch_function__` must receive the method itself, but C
    would look it up by name and find the wrapper."""
    import torch

    if not torch._C._has_torch_function(arguments):
        return original  # type: ignore[no-any-return]
    tensors = tuple(each for each in arguments if inherits(type(each), torch.Tensor))
    return functools.partial(torch.overrides.handle_torch_function, original, tensors)


def device_of(tensor: Any) -> str:
    """The kind of the tensor's device, "" if it is not a plain tensor."""
    return str(tensor.device.type) if plain_tensor(tensor) else ""
