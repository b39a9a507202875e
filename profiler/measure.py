"""How large a batch is: its tensors and their bytes, without touching what is not plainly a container."""

from __future__ import annotations

from collections import UserDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# Beyond these a batch is not walked to its end: sizes are then unmeasured, never guessed.
MAX_NODES = 4096
MAX_DEPTH = 12

_LEAVES = (int, float, str, bool, type(None), complex)


def batch_size_of(batch: Any) -> tuple[int, int]:
    """(bytes, tensors) of the batch's tensors and NumPy arrays; (-1, -1) where it holds neither or cannot be walked.

    Only dict, list and tuple (and their subclasses and UserDict) are opened: iterating over anything else could run
    the user's code.
    """
    import torch

    total = tensors = nodes = 0
    found = False
    level: list[Any] = [batch]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, torch.Tensor):
                total += _tensor_bytes(item)
                tensors += 1
                found = True
            elif isinstance(item, dict | UserDict):
                below.extend(item.values())
            elif isinstance(item, list | tuple):
                below.extend(item)
            elif isinstance(item, bytes | bytearray):
                total += len(item)
                found = True
            elif not isinstance(item, _LEAVES) and type(item).__module__ == "numpy":
                total += int(getattr(item, "nbytes", 0))
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
