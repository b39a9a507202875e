"""What the attributes of a data set are: kind, shape, size. Only types known exactly are asked
anything at all.

Values are never recorded: of texts and paths only that they are some, how many, and the commonest
suffix.
"""

from __future__ import annotations

import collections
import math
import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...guard.static_access import (
    class_name,
    inherits,
    is_callable,
    is_one_of,
    loaded,
    plain_tensor,
    qualified_name,
)
from ...store.inspection import MAX_ATTRIBUTES

if TYPE_CHECKING:
    import torch

# Of a long sequence, so many items are looked at, spread evenly; of a short one of arrays, all.
MAX_ITEMS = 64
FEW_ARRAYS = 16
MAX_COLUMNS = 256

_TEXT = (str, pathlib.PosixPath, pathlib.WindowsPath)
_NUMBERS = (int, float, bool, complex)
_SEQUENCES = (list, tuple)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9_]{0,7}(\.(gz|bz2|xz|zst|lz4))?$")

Facts = dict[str, Any]


def describe_attributes(values: dict[str, Any], most: int = MAX_ATTRIBUTES) -> list[Facts]:
    """One entry an attribute, as `inspection.Attribute` has it; one that cannot be looked at is
    "other"."""
    some = list(values.items())[: min(most, MAX_ATTRIBUTES)]
    return [{"name": name[:200], **describe(value)} for name, value in some]


def describe(value: Any) -> Facts:
    """Kind, type and what else is known of one value."""
    kind = "other"
    try:
        for known in (_builtin, _array, _frame, _hdf5, _arrow, _store):
            facts = known(value)
            if facts is not None:
                return {"type": class_name(type(value)), **facts}
        if is_dataset(value):
            kind = "dataset"
        elif is_callable(value):
            return {"kind": "callable", "type": qualified_name(value)}
    except (
        Exception
    ):  # an array in a state of its own: closed, half made, of a version we do not know
        pass
    return {"kind": kind, "type": class_name(type(value))}


def is_dataset(value: Any) -> bool:
    """Whether it is one of torch's data sets."""
    from torch.utils.data import Dataset

    return inherits(type(value), Dataset)


def _builtin(value: Any) -> Facts | None:
    kind = type(value)
    if value is None:
        return {"kind": "none"}
    if is_one_of(kind, _TEXT):
        return {"kind": "text"}
    if is_one_of(kind, _NUMBERS):
        return {"kind": "scalar"}
    if is_one_of(kind, (bytes, bytearray)):
        return {"kind": "other", "length": len(value), "nbytes": len(value)}
    if is_one_of(kind, (set, frozenset, collections.deque)):
        return {"kind": "other", "length": len(value)}
    if kind is range:
        return {"kind": "numbers", "length": len(value)}
    if is_one_of(kind, _MAPPINGS):
        return {"kind": "dict", "length": len(value), **_items(list(_first(value.values())))}
    if is_one_of(kind, _SEQUENCES):
        return _sequence(value)
    return None


def _first(values: Any) -> Iterator[Any]:
    for _, item in zip(range(FEW_ARRAYS + 1), values, strict=False):
        yield item


def _sequence(value: Any) -> Facts:
    length = len(value)
    seen = [value[i] for i in range(0, length, max(1, length // MAX_ITEMS))][:MAX_ITEMS]
    if seen and _all_of(seen, _NUMBERS):
        return {"kind": "numbers", "length": length}
    # Pairs of a path and a label, as an image folder has them, are paths too.
    pairs = _all_of(seen, _SEQUENCES) and all(seen)
    texts = [item[0] for item in seen] if pairs else seen
    if seen and _all_of(texts, _TEXT):
        suffixes = collections.Counter(_suffix(item) for item in texts)
        suffix = suffixes.most_common(1)[0][0]
        paths = sum(map(_is_path, texts)) > len(texts) / 2
        if paths:
            facts: Facts = {"kind": "paths", "length": length, "suffix": suffix or None}
            return {**facts, "items": class_name(type(seen[0]))} if pairs else facts
        if not pairs:
            return {"kind": "texts", "length": length}
    return {"kind": "list", "length": length, **_items([*_first(value)])}


def _all_of(items: list[Any], kinds: tuple[type, ...]) -> bool:
    return all(is_one_of(type(item), kinds) for item in items)


def _suffix(item: Any) -> str:
    found = _SUFFIX.search(str(item)[-40:])
    return found[0].lower() if found else ""


def _is_path(item: Any) -> bool:
    if type(item) is not str:
        return True
    return (
        len(item) < 4096
        and "\n" not in item
        and bool(_suffix(item) or (os.sep in item and " " not in item))
    )


def _items(first: list[Any]) -> Facts:
    """Of a container's first items: the type of the first, and where all of a few are arrays, what
    they come to."""
    if not first:
        return {}
    facts: Facts = {"items": class_name(type(first[0]))}
    arrays = [_array(item) for item in first] if len(first) <= FEW_ARRAYS else [None]
    known = [array for array in arrays if array is not None]
    if len(known) == len(arrays):
        facts |= {name: known[0].get(name) for name in ("shape", "dtype", "device")}
        facts["nbytes"] = sum(array["nbytes"] for array in known)
        facts["contiguous"] = all(array["contiguous"] for array in known)
    return facts


def _array(value: Any) -> Facts | None:
    """Tensors and NumPy arrays."""
    if plain_tensor(value):
        return _tensor(value)
    numpy = loaded("numpy")
    is_map = type(value) is numpy.get("memmap")
    if not is_map and type(value) is not numpy.get("ndarray"):
        return None
    return {
        "kind": "memmap" if is_map else "ndarray",
        "shape": list(value.shape),
        "dtype": str(value.dtype)[:200],
        "nbytes": int(value.nbytes),
        "contiguous": bool(value.flags.c_contiguous),
    }


def _tensor(value: torch.Tensor) -> Facts:
    import torch

    return {
        "kind": "tensor",
        "shape": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "nbytes": value.numel() * value.element_size(),
        "contiguous": value.layout is torch.strided and value.is_contiguous(),
        "device": str(value.device),
    }


def _frame(value: Any) -> Facts | None:
    pandas = loaded("pandas")
    if type(value) is pandas.get("Series"):
        return {"kind": "dataframe", "shape": list(value.shape), "dtype": str(value.dtype)[:200]}
    if type(value) is not pandas.get("DataFrame"):
        return None
    shape = [int(n) for n in value.shape]
    facts: Facts = {"kind": "dataframe", "shape": shape, "length": shape[0]}
    blocks: Any = getattr(value._mgr, "blocks", ())
    if len(blocks) <= MAX_COLUMNS:
        facts["nbytes"] = sum(int(block.values.nbytes) for block in blocks)
        facts["dtype"] = str(blocks[0].values.dtype) if len(blocks) == 1 else None
    return facts


def _hdf5(value: Any) -> Facts | None:
    h5py = loaded("h5py")
    if is_one_of(type(value), (h5py.get("File"), h5py.get("Group"))):
        return {"kind": "hdf5"}
    if type(value) is not h5py.get("Dataset"):
        return None
    facts: Facts = {"kind": "hdf5"}
    if value.id.valid:
        shape, dtype = value.id.shape, value.id.dtype
        facts |= _sized(shape, dtype)
    return facts


def _arrow(value: Any) -> Facts | None:
    arrow, sets = loaded("pyarrow"), loaded("datasets")
    if is_one_of(type(value), (arrow.get("Table"), arrow.get("RecordBatch"))):
        return {
            "kind": "arrow",
            "shape": [value.num_rows, value.num_columns],
            "length": value.num_rows,
        }
    if sets and type(value) is sets.get("Dataset"):
        return {"kind": "hf", "length": value.num_rows}
    bases = [arrow[name] for name in ("Array", "ChunkedArray") if name in arrow]
    if any(inherits(type(value), base) for base in bases) and class_name(type(value)).startswith(
        "pyarrow."
    ):
        return {"kind": "arrow", "length": len(value), "dtype": str(value.type)[:200]}
    return None


def _store(value: Any) -> Facts | None:
    """Key-value stores and chunked arrays, whose shape is taken from memory, never from their
    storage."""
    if type(value) is loaded("lmdb").get("Environment"):
        return {"kind": "lmdb"}
    zarr = loaded("zarr")
    if type(value) is zarr.get("Group"):
        return {"kind": "zarr"}
    if zarr and type(value) is zarr.get("Array"):
        facts: Facts = {"kind": "zarr"}
        own: Callable[[str], Any] = vars(value).get
        metadata = own("_async_array") and vars(own("_async_array")).get("metadata")
        if metadata is not None:
            facts["shape"] = [int(n) for n in metadata.shape]
        elif own("_shape") is not None:
            facts |= _sized(own("_shape"), own("_dtype"))
        return facts
    return None


def _sized(shape: Any, dtype: Any) -> Facts:
    sides = [int(n) for n in shape]
    return {
        "shape": sides,
        "dtype": str(dtype)[:200],
        "nbytes": math.prod(sides) * int(dtype.itemsize),
    }
