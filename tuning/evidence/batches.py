"""Batches as values: whether two are the same, where their memory is, whether a worker could send
them."""

import hashlib
import pickle
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from ...profiler.guard.static_access import contents, in_class, inherits, is_one_of, unseen
from .parts import PLAIN, attributes
from .state import State

ITEMS, DEPTH = 64, 4  # of a batch that are looked at, to know whether it could be sent
_OWN_PICKLING = ("__reduce__", "__reduce_ex__", "__getstate__")


def digest(batch: Any) -> bytes:
    """Equal for equal batches: kinds, shapes and values, and the attributes of unknown objects."""
    found = hashlib.blake2b(digest_size=16)
    _digest(batch, found.update, 8)
    return found.digest()


def _digest(value: Any, add: Any, depth: int) -> None:
    import torch

    kind = type(value)
    add(kind.__name__.encode())
    inside: Any = ()
    if inherits(kind, torch.Tensor):
        with unseen():
            add(f"{value.dtype}{tuple(value.shape)}".encode())
            plain = value.layout is torch.strided and value.device.type == "cpu"
            if plain and not value.is_quantized and value.numel():
                plain = value.detach().resolve_conj().resolve_neg().contiguous()
                add(memoryview(plain.reshape(-1).view(torch.uint8).numpy()))
    elif isinstance(value, np.ndarray):
        add(f"{value.dtype}{value.shape}".encode())
        objects = value.dtype.hasobject
        add(repr(value.tolist()).encode() if objects else np.ascontiguousarray(value).tobytes())
    elif is_one_of(kind, PLAIN) or isinstance(value, np.generic):
        add(repr(value).encode())
    else:
        held = contents(value)
        inside = [*((attributes(value) or {}).items() if held is None else held)]
        add(str(len(inside)).encode())
    for key, each in inside if depth else ():
        add(repr(key).encode())
        _digest(each, add, depth - 1)


def tensors_of(batch: Any, depth: int = DEPTH, items: int | None = ITEMS) -> Iterator[Any]:
    """The plain tensors in a batch; of lists, those of the first items."""
    import torch

    if type(batch) is torch.Tensor:
        yield batch
    elif depth:
        for _, each in islice(contents(batch) or (), items):
            yield from tensors_of(each, depth - 1, items)


def views(batch: Any, data: State) -> bool:
    """Whether tensors of the batch are views of memory that the data holds."""
    memories = (memory_of(tensor) for tensor in tensors_of(batch))
    return any(memory is not None and data.aliases(*memory[:2]) for memory in memories)


def memory_of(tensor: Any) -> tuple[int, int, int] | None:
    """(address, bytes) of the storage behind a CPU tensor, and the bytes of the tensor itself."""
    with unseen():
        if tensor.device.type != "cpu" or tensor.layout.__str__() != "torch.strided":
            return None
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes(), tensor.numel() * tensor.element_size()


def why_not_sent(batch: Any, depth: int = DEPTH) -> str | None:
    """Why a worker could or might not send such a batch; None where it could. Only the first items
    of lists are checked."""
    import torch

    kind = type(batch)
    if is_one_of(kind, PLAIN) or kind is np.ndarray or isinstance(batch, np.generic):
        return None
    if kind is torch.Tensor:
        with unseen():
            history = batch.requires_grad and not batch.is_leaf
        why = "its batches hold a tensor with a history, which torch does not send"
        return why if history else None
    try:
        pickle.dumps(kind)
        # Where only Python's own code runs, and nothing inside has other.
        holds = is_one_of(kind, (list, tuple, dict, set, frozenset))
        if kind.__module__ in ("builtins", "_thread", "_io") and not holds:
            pickle.dumps(batch)
    except Exception:
        return (
            f"its batches hold a {kind.__name__} that cannot be pickled: no worker could send them"
        )
    if kind is dict or isinstance(batch, list | tuple):
        inside = batch.values() if kind is dict else batch
    elif any(in_class(kind, name) is not in_class(object, name) for name in _OWN_PICKLING):
        return None  # it says itself how it is pickled
    else:
        inside = (attributes(batch) or {}).values()
    found = (why_not_sent(each, depth - 1) for each in islice(inside, ITEMS if depth else 0))
    return next(filter(None, found), None)
