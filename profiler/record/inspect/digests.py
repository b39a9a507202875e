"""Digests: 63-bit hashes that recognise the same data in another epoch, rank or worker.

They are stable across processes (Python's own `hash` is not). -1: the data cannot be recognised.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice
from typing import Any

from ...guard.static_access import (
    NUMBERS,
    contents,
    instance_vars,
    is_one_of,
    loaded,
    unseen,
)
from .inspect_batch import as_array, is_array, walk

UNKNOWN = -1

MAX_INDICES = 64
MAX_LEAVES = 8
MAX_LEAF_BYTES = 16 << 10


def plain_indices(drawn: Any) -> list[int] | None:
    """The indices of a batch as a new list of ints, None if they are anything else."""
    import torch

    if is_array(drawn) or type(drawn) is torch.Tensor:
        with unseen():
            array = as_array(drawn)
            if array is None or array.dtype.kind not in "iu":
                return None
            return [int(i) for i in array.reshape(-1)[:MAX_INDICES]]
    held = islice(contents(drawn) or (), MAX_INDICES)
    some = [drawn] if type(drawn) is int else [index for _, index in held]
    kinds = [int, *(loaded("numpy").get(name) for name in ("int64", "int32"))]
    return [int(i) for i in some] if some and all(is_one_of(type(i), kinds) for i in some) else None


def digest_of_indices(indices: list[int]) -> int:
    """The digest of a batch's indices, in order."""
    return _number(blake2b(repr(indices).encode(), digest_size=8).digest())


def digest_of_batch(batch: Any, opened: int = 0) -> int:
    """The digest of the beginning of a batch's first leaves. UNKNOWN if one cannot be read, or if
    all hold a single value: equal digests would then mean nothing. If `opened`, objects are opened
    so deep, and what cannot be read is left out."""
    hashed = blake2b(digest_size=8)
    telling = False
    with unseen():
        for path, leaf in walk(batch, MAX_LEAVES):
            data = _bytes_of(leaf)
            if data is None and opened:
                inner = digest_of_batch(instance_vars(leaf), opened - 1)
                data = b"" if inner == UNKNOWN else repr(inner).encode()
            if data is None:
                return UNKNOWN
            hashed.update(path.encode("utf-8", "replace") + b"\0" + data)
            telling = telling or _tells(leaf, data)
    return _number(hashed.digest()) if telling else UNKNOWN


def _tells(leaf: Any, data: bytes) -> bool:
    """Whether this leaf is unlikely to be equal by chance, as zeros, flags and empty texts are."""
    if is_one_of(type(leaf), (bool, type(None))):
        return False
    return bool(leaf) if is_one_of(type(leaf), (*NUMBERS, str)) else data.strip(data[:1]) != b""


def _bytes_of(leaf: Any) -> bytes | None:
    if type(leaf) is str:
        return leaf[:MAX_LEAF_BYTES].encode("utf-8", "surrogatepass")
    if is_one_of(type(leaf), (bytes, bytearray)):
        return bytes(leaf[:MAX_LEAF_BYTES])
    if leaf is None or is_one_of(type(leaf), NUMBERS):
        return repr(leaf).encode()

    array = as_array(leaf)
    if array is None or array.dtype.hasobject:
        return None
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return bytes(flat[: max(1, MAX_LEAF_BYTES // array.itemsize)].tobytes())


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "little") & (2**63 - 1)
