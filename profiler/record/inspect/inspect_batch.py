"""Describes what a batch is made of, as `inspection.Leaf`, from one look at one batch.

Plain containers are opened by their base class's own methods. CPU tensors and arrays are read
through NumPy views of a few thousand values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from ...base.metadata import Facts
from ...guard.static_access import (
    NUMBERS,
    class_name,
    contents,
    inherits,
    is_one_of,
    loaded,
    plain_tensor,
    unseen,
)
from ...store.inspection import MAX_LEAVES

MAX_DEPTH = 8
MAX_NODES = 1024

LOOKED_INTO = 16  # leaves whose values are looked at
SAMPLED_VALUES = 4096
# 8-bit images have values k/255; with fewer distinct values it is a mask, labels or a constant.
STEPS_OF_BYTE = 255
CLOSE = 1e-6
LEAST_KINDS = 8
LEAST_MAXIMUM = 0.1

SAMPLED_ROWS = 64
SAMPLED_ROW_VALUES = 1 << 17
# A filler is rare inside rows; a value that is common there is data (one-hot, ink).
MOST_INSIDE = 0.05


def inspect_batch(batch: Any) -> Facts:
    """`structure` and `leaves` of `inspection.Inspection`, {} for an unknown kind of batch. Never
    raises."""
    with suppress(Exception), unseen():
        found = enumerate(walk(batch, MAX_LEAVES))
        leaves = [_leaf(path, value, number < LOOKED_INTO) for number, (path, value) in found]
        return {"structure": class_name(type(batch)), "leaves": leaves}
    return {}


def walk(batch: Any, most: int) -> Iterator[tuple[str, Any]]:
    """The first leaves of a batch, in order, each with the path to it in code."""
    waiting: list[tuple[str, Any, int]] = [("", batch, 0)]
    nodes = found = 0
    while waiting and found < most and nodes < MAX_NODES:
        path, value, depth = waiting.pop()
        nodes += 1
        inside = contents(value) if depth < MAX_DEPTH else None
        if inside is None:
            found += 1
            yield path, value
        else:
            some = [(f"{path}[{_key(key)}]", item, depth + 1) for key, item in islice(inside, most)]
            waiting += reversed(some)


def _key(key: Any) -> str:
    return (
        repr(key)[:100] if is_one_of(type(key), (str, int, bool, bytes)) else class_name(type(key))
    )


def _leaf(path: str, value: Any, with_values: bool) -> Facts:
    kind = leaf_kind(value)
    shown = {SUBCLASS: "tensor", "none": "other"}.get(kind, kind)
    facts: Facts = {"path": path, "kind": shown}
    with suppress(Exception):  # what was found until then stands
        if kind in ("tensor", "ndarray"):
            facts |= memory_of(value.shape, value.dtype)
            facts["device"] = str(value.device) if kind == "tensor" else "cpu"
            if kind == "tensor":
                facts["storage_bytes"] = value.untyped_storage().nbytes()
            if kind == "tensor" and value.is_cpu:
                facts["pinned"] = value.is_pinned()
            array = as_array(value)
            if array is not None and with_values:
                facts["whole_255ths"] = whole_255ths(array)
                facts["padding_share"] = padding_share(array)
    return facts


SUBCLASS = "tensor subclass"


def leaf_kind(value: Any) -> str:
    """ "tensor", SUBCLASS (which is asked nothing), "ndarray", "text", "number", "none" or
    "other"."""
    import torch

    if inherits(type(value), torch.Tensor):
        return "tensor" if plain_tensor(value) else SUBCLASS
    if is_array(value):
        return "ndarray"
    if value is None or type(value) is str:
        return "none" if value is None else "text"
    return "number" if is_one_of(type(value), NUMBERS) else "other"


def memory_of(shape: Iterable[int], dtype: Any) -> Facts:
    """Shape, type and size of an array or tensor."""
    sides = [int(n) for n in shape]
    nbytes = math.prod(sides) * int(dtype.itemsize)
    return {"shape": sides, "dtype": type_name(dtype), "nbytes": nbytes}


def type_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")[:200]


def is_array(value: Any) -> bool:
    """Whether it is one of NumPy's own arrays."""
    return type(value) is loaded("numpy").get("ndarray")


def as_array(value: Any) -> Any:
    """A tensor's memory as a NumPy array; an array itself. None on another device, sparse, or of a
    type NumPy lacks, and for any other object."""
    import torch

    if is_array(value):
        return value
    if not plain_tensor(value) or not loaded("numpy"):
        return None
    if not value.is_cpu or value.layout is not torch.strided or value.dtype is torch.bfloat16:
        return None
    if value.is_quantized or value.is_conj() or value.is_neg():
        return None
    return value.detach().numpy()


def whole_255ths(array: Any) -> bool | None:
    """Whether a sample of these values are 8-bit values divided by 255, None if they are not
    floats."""
    if array.dtype.kind != "f" or not array.size:
        return None
    import numpy as np

    # With an odd stride, no channel of an interleaved image is missed.
    step = max(1, array.size // SAMPLED_VALUES) | 1
    values = array.flat[::step][:SAMPLED_VALUES].astype(np.float64)
    if not np.isfinite(values).all() or values.min() < -CLOSE or values.max() > 1 + CLOSE:
        return False
    scaled = np.rint(values * STEPS_OF_BYTE)
    near = max(CLOSE, float(np.finfo(array.dtype).eps) / 2)  # half precision rounds by more
    if np.abs(values - scaled / STEPS_OF_BYTE).max() > near:
        return False
    return bool(values.max() > LEAST_MAXIMUM and len(np.unique(scaled)) >= LEAST_KINDS)


def padding_share(array: Any) -> float | None:
    """Share of positions along the second dimension that are filled up with the value at the rows'
    ends.

    None without such a dimension. 0 if that value is common inside the rows: then it is data.
    """
    if (
        array.ndim < 2
        or array.dtype.kind not in "iuf"
        or min(array.shape[:2]) < 2
        or not array.size
    ):
        return None
    import numpy as np

    rows = min(SAMPLED_ROWS, SAMPLED_ROW_VALUES // (array.size // array.shape[0]))
    if rows < 2:
        return None
    sample = array[:: max(1, array.shape[0] // rows)][:rows]
    ends = sample[:, -1].reshape(len(sample), -1)
    alike = ends[(ends == ends[:, :1]).all(axis=1), 0]
    if not len(alike):
        return 0.0
    kinds, counts = np.unique(alike, return_counts=True)
    filler = kinds[counts.argmax()]
    filled = sample == filler
    if filled.ndim > 2:
        filled = filled.reshape(*filled.shape[:2], -1).all(axis=2)
    # From its end, a row's fillers reach to the first other value, or through the whole row.
    backward = filled[:, ::-1]
    lengths = np.where(filled.all(axis=1), filled.shape[1], backward.argmin(axis=1))
    trailing = int(lengths.sum())
    inside = filled.size - trailing
    if lengths.max() < 2 or not inside or int(filled.sum()) - trailing > MOST_INSIDE * inside:
        return 0.0
    return trailing / int(filled.size)
