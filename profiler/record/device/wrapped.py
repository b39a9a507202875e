"""What stands in the place of a method of tensors while calls of it are noticed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...guard.static_access import inherits, plain_tensor
from ...native.form import hooks


def noticing(original: Any, noticed: Callable[..., Any]) -> Any:
    """For a class's attribute: calls `noticed` while it is `on`, otherwise the method itself."""
    import torch

    return hooks.Noticing(original, torch._C._has_torch_function_variadic, noticed)


def as_asked(original: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The method to call. Classes that are asked about calls are told of the method itself: C would
    look it up by its name, and tell them of what stands for it."""
    import torch

    if not torch._C._has_torch_function(arguments):
        return original  # type: ignore[no-any-return]
    tensors = tuple(each for each in arguments if inherits(type(each), torch.Tensor))
    return functools.partial(torch.overrides.handle_torch_function, original, tensors)


def device_of(tensor: Any) -> str:
    """The kind of device it lies on; "" for what does not answer by itself."""
    return str(tensor.device.type) if plain_tensor(tensor) else ""
