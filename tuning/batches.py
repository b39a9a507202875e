"""Batches as values: whether two are the same, where their memory is, whether a worker could send
them."""

from __future__ import annotations

import hashlib
import pickle
import types
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..profiler.guard.static_access import in_class, inherits, is_one_of, unseen
from .parts import PLAIN, attributes
from .state import State

ITEMS, DEPTH = 64, 4  # of a batch that are looked at, to know whether it could be sent
_OWN_PICKLING = ("__reduce__", "__reduce_ex__", "__getstate__")


def digest(batch: Any) -> bytes:
    """Equal if the batches are: kinds, shapes and every value. Of objects of unknown classes, their
    attributes."""
    found = hashlib.blake2b(digest_size=16)
    _digest(batch, found.update, 8)
    return found.digest()


def _digest(value: Any, add: Any, depth: int) -> None:
    import torch

    kind = type(value)
    add(kind.__name__.encode())
    if inherits(kind, torch.Tensor):
        with unseen():
            add(f"{value.dtype}{tuple(value.shape)}".encode())
            if (
                value.layout is torch.strided
                and value.device.type == "cpu"
                and not value.is_quantized
            ):
                plain = value.detach().resolve_conj().resolve_neg().contiguous()
                add(
                    memoryview(plain.reshape(-1).view(torch.uint8).numpy())
                    if plain.numel()
                    else b""
                )
    elif isinstance(value, np.ndarray):
        add(f"{value.dtype}{value.shape}".encode())
        add(
            repr(value.tolist()).encode()
            if value.dtype.hasobject
            else np.ascontiguousarray(value).tobytes()
        )
    elif is_one_of(kind, PLAIN) or isinstance(value, np.generic):
        add(repr(value).encode())
    elif depth and isinstance(value, Mapping):
        for key in value:
            add(repr(key).encode())
            _digest(value[key], add, depth - 1)
    elif depth and isinstance(value, list | tuple):
        add(str(len(value)).encode())
        for each in value:
            _digest(each, add, depth - 1)
    elif depth:
        for name, each in (attributes(value) or {}).items():
            add(name.encode())
            _digest(each, add, depth - 1)


def tensors_of(batch: Any, depth: int = DEPTH, items: int | None = ITEMS) -> Iterator[Any]:
    """The plain tensors in a batch, of lists the first items'."""
    import torch

    if type(batch) is torch.Tensor:
        yield batch
    elif depth:
        inside = (
            batch.values()
            if type(batch) is dict
            else batch
            if isinstance(batch, list | tuple)
            else ()
        )
        for each in islice(inside, items):
            yield from tensors_of(each, depth - 1, items)


def views(batch: Any, data: State) -> bool:
    """Whether tensors of the batch are views of memory that the data holds."""
    memories = (memory_of(tensor) for tensor in tensors_of(batch))
    return any(memory is not None and data.aliases(*memory[:2]) for memory in memories)


def memory_of(tensor: Any) -> tuple[int, int, int] | None:
    """(address, bytes) of the storage that a tensor of the CPU is a view of, and the bytes of the
    tensor itself."""
    with unseen():
        if tensor.device.type != "cpu" or tensor.layout.__str__() != "torch.strided":
            return None
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes(), tensor.numel() * tensor.element_size()


def why_not_sent(batch: Any, depth: int = DEPTH) -> str | None:
    """Why a worker could not send such a batch, or might not; None where nothing speaks against it.
    Of lists, the first items are looked at."""
    import torch

    kind = type(batch)
    if is_one_of(kind, PLAIN) or kind is np.ndarray or isinstance(batch, np.generic):
        return None
    if kind is torch.Tensor:
        with unseen():
            history = batch.requires_grad and not batch.is_leaf
        return (
            "its batches hold a tensor with a history, which torch does not send"
            if history
            else None
        )
    try:
        pickle.dumps(kind)
        if is_one_of(kind, (types.FunctionType, types.BuiltinFunctionType)) or _of_builtin(kind):
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


def _of_builtin(kind: type) -> bool:
    """Whether only Python's own code runs where such an object is pickled, and it holds nothing
    that has other."""
    return kind.__module__ in ("builtins", "_thread", "_io") and not is_one_of(
        kind, (list, tuple, dict, set, frozenset)
    )
