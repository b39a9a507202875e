"""How large a batch is: its tensors and their bytes."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

# Larger batches are not walked to their end. Their size is then unmeasured, never guessed.
MAX_NODES = 4096
MAX_DEPTH = 12


def batch_size_of(batch: Any) -> tuple[int, int]:
    """(bytes, tensors) of the batch's tensors and NumPy arrays, (-1, -1) if it has neither or
    cannot be walked. Runs none of the user's code."""
    import torch

    from ...guard.static_access import PLAIN, contents, inherits, is_one_of, loaded

    ndarray, generic, memmap = (loaded("numpy").get(n) for n in ("ndarray", "generic", "memmap"))
    total = tensors = nodes = 0
    found = False
    level = [batch]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if is_one_of(kind, PLAIN):
                continue
            if inherits(kind, torch.Tensor):
                # A subclass may hook attribute access with code of its own.
                with torch._C.DisableTorchFunctionSubclass():
                    total += item.numel() * item.element_size()
                tensors += 1
                found = True
            elif (held := contents(item)) is not None:
                below.extend(map(itemgetter(1), held))
            elif is_one_of(kind, (bytes, bytearray)):
                total += len(item)
                found = True
            elif is_one_of(kind, (ndarray, memmap)) or inherits(kind, generic):
                total += int(item.nbytes)
                found = True
        nodes += len(below)
        if not below:
            return (total, tensors) if found else (-1, -1)
        if nodes > MAX_NODES:
            break
        level = below
    return -1, -1
