"""The memory that a batch lies in, however it is nested: in containers, dataclasses, and objects
with attributes.

Containers are opened by their base class's own methods, objects by their instance dictionary: no
code of the user's runs. That is how a `BatchEncoding`, a `TensorDict`, a graph library's `Batch`
and a class of one's own hold theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...guard.static_access import inherits, instance_vars, is_one_of, plain_tensor, unseen

if TYPE_CHECKING:
    import torch

# A longer list is no batch of tensors.
MAX_ITEMS = 1024
# Of a batch, so many objects are opened: beyond that it is not their tensors that it consists of.
MAX_OBJECTS = 64
DEPTH = 8

_LEAVES = (int, str, float, bool, type(None), bytes)
_CONTAINERS: tuple[tuple[Any, Any], ...] = (
    (dict, dict.values),
    (list, list.__iter__),
    (tuple, tuple.__iter__),
)


def storages_of(batch: Any) -> list[torch.UntypedStorage]:
    """Those of its tensors on the CPU, in order."""
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
        if is_one_of(kind, _LEAVES) or not depth:
            return
        for base, items in _CONTAINERS:
            if inherits(kind, base):
                if base is dict or base.__len__(value) <= MAX_ITEMS:
                    for item in items(value):
                        look(item, depth - 1)
                return
        if plain_tensor(value):
            with unseen():
                take(value)
        elif len(opened) < MAX_OBJECTS and not any(value is other for other in opened):
            opened.append(value)
            for item in instance_vars(value).values():
                look(item, depth - 1)

    look(batch, DEPTH)
    return found
