"""Describes the attributes of a data set: kind, shape, size. Only objects of well known types are
asked anything.

Values are never recorded. Of texts and paths only their number and the commonest suffix are.
"""

from __future__ import annotations

import collections
import os
import pathlib
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from ...base.metadata import Facts
from ...guard.static_access import (
    NUMBERS,
    class_name,
    inherits,
    is_callable,
    is_one_of,
    loaded,
    plain_tensor,
    qualified_name,
)
from ...store.inspection import MAX_ATTRIBUTES
from .inspect_batch import memory_of

# Items looked at in a long sequence, evenly spread; a short one of arrays is read whole.
MAX_ITEMS = 64
FEW_ARRAYS = 16
MAX_COLUMNS = 256

_TEXT = (str, pathlib.PosixPath, pathlib.WindowsPath)
_SIMPLE = (type(None), *_TEXT, *NUMBERS)
_SIZED = (range, set, frozenset, collections.deque)
_SEQUENCES = (list, tuple)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9_]{0,7}(\.(gz|bz2|xz|zst|lz4))?$")


def describe_attributes(values: Facts, most: int) -> list[Facts]:
    """One `inspection.Attribute` per attribute; one that cannot be looked at is "other"."""
    some = islice(values.items(), min(most, MAX_ATTRIBUTES))
    return [{"name": name[:200], **describe(value)} for name, value in some]


def describe(value: Any) -> Facts:
    """Kind, type and what else is known of one value."""
    facts: Facts = {"type": class_name(type(value))}
    try:
        known = _builtin(value) or _array(value) or _of_library(value)
        if known is None and not is_dataset(value) and is_callable(value):
            return {"kind": "callable", "type": qualified_name(value)}
        return facts | (known or {"kind": "dataset" if is_dataset(value) else "other"})
    except Exception:  # closed, half made, or of an unknown version
        return {"kind": "other", **facts}


def is_dataset(value: Any) -> bool:
    """Whether it is one of torch's data sets."""
    from torch.utils.data import Dataset

    return inherits(type(value), Dataset)


def _builtin(value: Any) -> Facts | None:
    kind = type(value)
    if is_one_of(kind, _SIMPLE):
        return {"kind": "none" if value is None else "text" if is_one_of(kind, _TEXT) else "scalar"}
    if is_one_of(kind, (bytes, bytearray)):
        return {"kind": "other", "length": len(value), "nbytes": len(value)}
    if is_one_of(kind, _SIZED):
        return {"kind": "numbers" if kind is range else "other", "length": len(value)}
    if is_one_of(kind, _MAPPINGS):
        return {"kind": "dict", "length": len(value), **_items(value.values())}
    return _sequence(value) if is_one_of(kind, _SEQUENCES) else None


def _sequence(value: Any) -> Facts:
    length = len(value)
    seen = [value[i] for i in range(0, length, max(1, length // MAX_ITEMS))][:MAX_ITEMS]
    if seen and _all_of(seen, NUMBERS):
        return {"kind": "numbers", "length": length}
    # An image folder's pairs of a path and a label are paths too.
    pairs = _all_of(seen, _SEQUENCES) and all(seen)
    texts = [item[0] for item in seen] if pairs else seen
    if seen and _all_of(texts, _TEXT):
        if sum(map(_is_path, texts)) > len(texts) / 2:
            suffixes = collections.Counter(map(_suffix, texts))
            suffix = suffixes.most_common(1)[0][0]
            facts: Facts = {"kind": "paths", "length": length, "suffix": suffix or None}
            return {**facts, "items": class_name(type(seen[0]))} if pairs else facts
        if not pairs:
            return {"kind": "texts", "length": length}
    return {"kind": "list", "length": length, **_items(value)}


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
        and _suffix(item) != item.lower()  # a suffix alone names no file
    )


def _items(values: Iterable[Any]) -> Facts:
    """Of a container: the type of its first item, and if all of a few are arrays, their sum."""
    first = list(islice(values, FEW_ARRAYS + 1))
    if not first:
        return {}
    facts: Facts = {"items": class_name(type(first[0]))}
    arrays = [_array(item) for item in first] if len(first) <= FEW_ARRAYS else [None]
    known = [array for array in arrays if array is not None]
    if len(known) == len(arrays):
        facts |= {name: known[0].get(name) for name in ("shape", "dtype", "device")}
        facts["nbytes"] = sum(array["nbytes"] for array in known)
    return facts


def _array(value: Any) -> Facts | None:
    """Tensors and NumPy arrays."""
    import torch

    if plain_tensor(value):
        # What is looked up in a subclass is of that class: known, but not as a tensor.
        own = type(value) in (torch.Tensor, torch.nn.Parameter)
        return {
            "kind": "tensor" if own else "other",
            **memory_of(value.shape, value.dtype),
            "device": str(value.device),
        }
    for kind in ("memmap", "ndarray"):
        if type(value) is loaded("numpy").get(kind):
            return {"kind": kind, **memory_of(value.shape, value.dtype)}
    return None


def _frame(value: Any) -> Facts:
    shape = [int(n) for n in value.shape]
    facts: Facts = {"shape": shape, "length": shape[0]}
    blocks: Any = getattr(value._mgr, "blocks", ())
    if len(blocks) <= MAX_COLUMNS:
        facts["nbytes"] = sum(int(block.values.nbytes) for block in blocks)
        facts["dtype"] = str(blocks[0].values.dtype) if len(blocks) == 1 else None
    return facts


def _rows(value: Any) -> Facts:
    return {"shape": [value.num_rows, value.num_columns], "length": value.num_rows}


# By class: its kind, and what tells more of it.
_LIBRARIES: dict[str, tuple[str, Callable[[Any], Facts] | None]] = {
    "pandas.DataFrame": ("dataframe", _frame),
    "pandas.Series": (
        "dataframe",
        lambda value: {"shape": list(value.shape), "dtype": str(value.dtype)[:200]},
    ),
    "h5py.File": ("hdf5", None),
    "h5py.Group": ("hdf5", None),
    "h5py.Dataset": (
        "hdf5",
        lambda value: memory_of(value.id.shape, value.id.dtype) if value.id.valid else {},
    ),
    "pyarrow.Table": ("arrow", _rows),
    "pyarrow.RecordBatch": ("arrow", _rows),
    "datasets.Dataset": ("hf", lambda value: {"length": value.num_rows}),
    "lmdb.Environment": ("lmdb", None),
    "zarr.Group": ("zarr", None),
    "zarr.Array": ("zarr", None),
}


def _of_library(value: Any) -> Facts | None:
    for path, (kind, more) in _LIBRARIES.items():
        module, _, name = path.partition(".")
        if type(value) is loaded(module).get(name):
            return {"kind": kind, **(more(value) if more is not None else {})}
    return None
