"""What a batch is made of, found in one look at one batch: `inspection.Leaf`, as JSON values.

Only plain containers are opened, through their base class's own methods; only CPU tensors and
arrays are read, through NumPy views of a few thousand of their values.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...guard.static_access import (
    class_name,
    inherits,
    instance_vars,
    is_one_of,
    loaded,
    plain_tensor,
    unseen,
)
from ...store.inspection import MAX_LEAVES

if TYPE_CHECKING:
    import torch

MAX_DEPTH = 8
MAX_NODES = 1024

LOOKED_INTO = 16  # leaves whose values are looked at
SAMPLED_VALUES = 4096
# Values k/255 are those of 8-bit images; fewer kinds of them are masks, labels or constants.
STEPS_OF_BYTE = 255
CLOSE = 1e-6
LEAST_KINDS = 8
LEAST_MAXIMUM = 0.1

SAMPLED_ROWS = 64
SAMPLED_ROW_VALUES = 1 << 17
# A filler stands at the ends of rows and hardly elsewhere; values that fill the inside too are data
# (one-hot, ink).
MOST_INSIDE = 0.05

_NUMBERS = (int, float, bool, complex)


def inspect_batch(batch: Any) -> dict[str, Any]:
    """`structure` and `leaves` of `inspection.Inspection`; {} for what cannot be looked at. Never
    raises."""
    try:
        with unseen():
            found = enumerate(walk(batch, MAX_LEAVES))
            leaves = [
                _leaf(path, value, with_values=number < LOOKED_INTO)
                for number, (path, value) in found
            ]
            return {"structure": class_name(type(batch)), "leaves": leaves}
    except Exception:  # a batch of a kind we have not met must not cost the recording
        return {}


def walk(batch: Any, most: int) -> Iterator[tuple[str, Any]]:
    """The first leaves of a batch, in order, with the path by which code reaches each."""
    waiting: list[tuple[str, Any, int]] = [("", batch, 0)]
    nodes = found = 0
    while waiting and found < most and nodes < MAX_NODES:
        path, value, depth = waiting.pop()
        nodes += 1
        inside = _inside(value, most) if depth < MAX_DEPTH else None
        if inside is None:
            found += 1
            yield path, value
        else:
            waiting += [(f"{path}[{key}]", item, depth + 1) for key, item in reversed(inside)]


def _inside(value: Any, most: int) -> list[tuple[str, Any]] | None:
    kind = type(value)
    if inherits(kind, UserDict):
        value = instance_vars(value).get("data")
        kind = type(value)
    if inherits(kind, dict):
        items = dict.items(value)
        return [(_key(key), item) for (key, item), _ in zip(items, range(most), strict=False)]
    for base in (list, tuple):
        if inherits(kind, base):
            return [
                (str(i), item) for i, item in zip(range(most), base.__iter__(value), strict=False)
            ]
    return None


def _key(key: Any) -> str:
    return (
        repr(key)[:100] if is_one_of(type(key), (str, int, bool, bytes)) else class_name(type(key))
    )


def _leaf(path: str, value: Any, with_values: bool) -> dict[str, Any]:
    import torch

    facts: dict[str, Any] = {"path": path, "kind": "other"}
    try:
        if inherits(type(value), torch.Tensor):
            facts["kind"] = "tensor"
            if plain_tensor(value):
                facts |= _tensor(value)
                array = as_array(value) if with_values else None
                facts |= _values(array) if array is not None else {}
        elif is_array(value):
            facts |= {
                "kind": "ndarray",
                "dtype": str(value.dtype)[:200],
                "shape": list(value.shape),
            }
            facts |= {"nbytes": int(value.nbytes), "device": "cpu"}
            facts |= _values(value) if with_values else {}
        elif type(value) is str:
            facts["kind"] = "text"
        elif is_one_of(type(value), _NUMBERS):
            facts["kind"] = "number"
    except Exception:  # what was found until then stands
        pass
    return facts


def _tensor(value: torch.Tensor) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": list(value.shape),
        "nbytes": value.numel() * value.element_size(),
        "device": str(value.device),
    }
    if value.is_cpu:
        facts["pinned"] = value.is_pinned()
    return facts


def is_array(value: Any) -> bool:
    """Whether it is one of NumPy's own arrays."""
    return type(value) is loaded("numpy").get("ndarray")


def as_array(value: torch.Tensor) -> Any:
    """The same memory as a NumPy array; None where there is none: another device, sparse, a type
    NumPy lacks."""
    import torch

    if (
        not value.is_cpu
        or value.layout is not torch.strided
        or not loaded("numpy")
        or value.dtype is torch.bfloat16
    ):
        return None
    if value.is_quantized or value.is_conj() or value.is_neg():
        return None
    return (value.detach() if value.requires_grad else value).numpy()


def _values(array: Any) -> dict[str, Any]:
    return {"whole_255ths": whole_255ths(array), "padding_share": padding_share(array)}


def whole_255ths(array: Any) -> bool | None:
    """Whether these are 8-bit values divided by 255, as far as a sample shows; None for what is no
    float array."""
    if array.dtype.kind != "f" or not array.size:
        return None
    import numpy as np

    # An odd stride does not stay within one channel of an interleaved image.
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
    """Share of positions along the second dimension that hold nothing but the filler the rows end
    with.

    None for what has no such dimension. 0 where the same value is as common inside the rows: then
    it is data.
    """
    if (
        array.ndim < 2
        or array.dtype.kind not in "iuf"
        or array.shape[0] < 2
        or array.shape[1] < 2
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
    # From its end, a row's fillers go as far as the first position that is none; all the way where
    # there is none.
    backward = filled[:, ::-1]
    lengths = np.where(filled.all(axis=1), filled.shape[1], backward.argmin(axis=1))
    trailing = int(lengths.sum())
    inside = filled.size - trailing
    if lengths.max() < 2 or not inside or int(filled.sum()) - trailing > MOST_INSIDE * inside:
        return 0.0
    return trailing / int(filled.size)
