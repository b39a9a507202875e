"""The memory of a batch, however it is nested: in containers, dataclasses, or objects with
attributes.

Objects are opened by their instance dictionary, so no code of the user's runs. That covers a
`BatchEncoding`, a `TensorDict`, a graph library's `Batch`, and a user's own class.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from ...guard.static_access import PLAIN, contents, instance_vars, is_one_of, plain_tensor, unseen

if TYPE_CHECKING:
    import torch

# A longer container is no batch of tensors.
MAX_ITEMS = 1024
# The most objects that are opened in a batch.
MAX_OBJECTS = 64
DEPTH = 8


def storages_of(batch: Any) -> list[torch.UntypedStorage]:
    """The storages of its CPU tensors, in order."""
    import torch

    found: list[torch.UntypedStorage] = []
    opened: list[Any] = []

    def take(tensor: torch.Tensor) -> None:
        if tensor.layout is torch.strided and tensor.is_cpu:
            found.append(tensor.untyped_storage())

    def look(value: Any, depth: int) -> None:
        kind = type(value)
        if kind is torch.Tensor:
            take(value)
            return
        if kind is bytes or is_one_of(kind, PLAIN) or not depth:
            return
        held = contents(value)
        if held is None and plain_tensor(value):
            with unseen():
                take(value)
            return
        if held is None:
            if len(opened) >= MAX_OBJECTS or any(value is other for other in opened):
                return
            opened.append(value)
            held = instance_vars(value).items()
        items = list(islice(held, MAX_ITEMS + 1))
        for _, item in items if len(items) <= MAX_ITEMS else ():
            look(item, depth - 1)

    look(batch, DEPTH)
    return found
