"""Torch's modes, which a program may have active: they see every call and operator inside them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


@contextmanager
def seen_by_modes() -> Iterator[list[Any]]:
    """What a function mode and a dispatch mode are told of in this block, in order."""
    seen: list[Any] = []

    def told(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(func)
        return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        __torch_function__ = told

    class Dispatched(TorchDispatchMode):
        __torch_dispatch__ = told

    with Functions(), Dispatched():
        yield seen
