"""How large a batch is: its tensors and their bytes, without touching what is not plainly a
container."""

from __future__ import annotations

from collections import UserDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# Beyond these a batch is not walked to its end: sizes are then unmeasured, never guessed.
MAX_NODES = 4096
MAX_DEPTH = 12

_PLAIN = (int, float, str, bool, type(None), complex)


def batch_size_of(batch: Any) -> tuple[int, int]:
    """(bytes, tensors) of the batch's tensors and NumPy arrays; (-1, -1) where it holds neither or
    cannot be walked.

    Only dict, list and tuple (and their subclasses and UserDict) are opened, by their base class's
    own methods: whatever else is asked of an object could run the user's code.
    """
    import torch

    from ...guard.static_access import inherits, instance_vars, is_one_of, loaded

    arrays = tuple(loaded("numpy").get(name) for name in ("ndarray", "generic", "memmap"))
    total = tensors = nodes = 0
    found = False
    level: list[Any] = [batch]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if is_one_of(kind, _PLAIN):
                continue
            if kind is torch.Tensor or inherits(kind, torch.Tensor):
                total += _tensor_bytes(item)
                tensors += 1
                found = True
            elif inherits(kind, dict):
                below.extend(dict.values(item))
            elif inherits(kind, UserDict):
                held = instance_vars(item).get("data")
                if inherits(type(held), dict):
                    below.extend(dict.values(held))  # type: ignore[arg-type]
            elif inherits(kind, list):
                below.extend(list.__iter__(item))
            elif inherits(kind, tuple):
                below.extend(tuple.__iter__(item))
            elif is_one_of(kind, (bytes, bytearray)):
                total += len(item)
                found = True
            elif arrays[0] is not None and (is_one_of(kind, arrays) or inherits(kind, arrays[1])):
                total += int(item.nbytes)
                found = True
        nodes += len(below)
        if not below:
            return (total, tensors) if found else (-1, -1)
        if nodes > MAX_NODES:
            break
        level = below
    return -1, -1


def _tensor_bytes(tensor: torch.Tensor) -> int:
    import torch

    if type(tensor) is not torch.Tensor:
        # A subclass may hook attribute access with code of its own.
        with torch._C.DisableTorchFunctionSubclass():
            return tensor.numel() * tensor.element_size()
    return tensor.numel() * tensor.element_size()
