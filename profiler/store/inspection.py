"""What was seen of a loader's parts without running them: its data set, samplers, collate function, and a batch.

`inspect_loader` makes it in the training process when the first loop begins, `LoaderRun.inspection` holds it.
Everything may be missing: an older run, an orphaned iterator, a part that could not be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.metadata import integer, number, strings, text

MAX_CHILDREN = 64
MAX_ATTRIBUTES = 128
MAX_LEAVES = 128
MAX_DEPTH = 4


@dataclass(frozen=True)
class Attribute:
    """One attribute of a data set.

    `kind`: "tensor", "ndarray", "memmap" (a memory-mapped ndarray), "dataframe" (pandas), "hdf5", "arrow" (table or
    array of pyarrow), "hf" (datasets.Dataset), "lmdb", "zarr", "paths" (a sequence of texts that look like file names),
    "texts", "numbers" (a list or tuple of ints or floats), "list", "dict", "dataset", "callable", "text", "scalar",
    "none" or "other". Shapes, dtypes and bytes are those of arrays; `length` is of sequences and mappings; `suffix` is
    the commonest file name suffix of "paths"; `items` names the type of the first item of "list" and "dict".
    """

    name: str
    kind: str
    type: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    nbytes: int | None = None
    contiguous: bool | None = None
    device: str | None = None
    length: int | None = None
    suffix: str | None = None
    items: str | None = None


@dataclass(frozen=True)
class Part:
    """An object that takes part: a data set (with the sets it wraps as `children`), a sampler, a function.

    `type` is its qualified name, `name` what code would call it (the class's or the function's own name), `bases` the
    qualified names of its classes, itself first. `module_file` is the file of the module that defines it, `qualname`
    its name there: the same class has both the same, whatever its module was called. `getitem`, `getitems`, `iter` and
    `call` hold source lines, dedented, where the source could be read: of `__getitem__`, `__getitems__`, `__iter__`,
    and of the function itself. `names` are the global and attribute names that code uses, functions of the same class
    included.
    """

    type: str
    name: str
    bases: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    module_file: str | None = None
    qualname: str | None = None
    length: int | None = None
    getitem: tuple[str, ...] = ()
    getitems: tuple[str, ...] = ()
    iter: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    children: tuple[Part, ...] = ()

    def is_a(self, *names: str) -> bool:
        """Whether one of its classes has this qualified name, or ends in it ('sampler.RandomSampler')."""
        return any(base == name or base.endswith("." + name) for base in self.bases for name in names)

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of this name."""
        return next((a for a in self.attributes if a.name == name), None)


@dataclass(frozen=True)
class Leaf:
    """One leaf of a batch. `path` is how code reaches it ("[0]", "['image']", "" for a batch that is one tensor)."""

    path: str
    kind: str  # "tensor", "ndarray", "text", "number" or "other"
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    nbytes: int | None = None
    device: str | None = None
    pinned: bool | None = None
    whole_255ths: bool | None = None  # float values that are all k/255: uint8 would hold them. None: not looked at
    padding_share: float | None = None  # part of the values that are trailing zeros or equal fillers


@dataclass(frozen=True)
class Inspection:
    """The parts of one loader, None where unknown. `structure` is the batch's outermost type."""

    dataset: Part | None = None
    sampler: Part | None = None
    batch_sampler: Part | None = None
    collate: Part | None = None
    worker_init: Part | None = None
    structure: str | None = None
    leaves: tuple[Leaf, ...] = ()

    @property
    def parts(self) -> list[Part]:
        """The data set and the sets it wraps, the outermost first; none where it was not looked at."""
        found = [self.dataset] if self.dataset is not None else []
        for part in found:
            found += part.children
        return found


def read_inspection(data: Mapping[str, Any]) -> Inspection:
    """What a loader's JSON holds of it under "inspection"; never raises, whatever that is."""
    raw = data.get("inspection")
    if not isinstance(raw, dict):
        return Inspection()
    return Inspection(
        dataset=_part(raw.get("dataset"), 0),
        sampler=_part(raw.get("sampler"), 0),
        batch_sampler=_part(raw.get("batch_sampler"), 0),
        collate=_part(raw.get("collate"), 0),
        worker_init=_part(raw.get("worker_init"), 0),
        structure=text(raw, "structure"),
        leaves=tuple(_leaf(item) for item in _dicts(raw.get("leaves"))[:MAX_LEAVES]),
    )


def _part(raw: Any, depth: int) -> Part | None:
    if not isinstance(raw, dict) or depth > MAX_DEPTH:
        return None
    children = [_part(item, depth + 1) for item in _dicts(raw.get("children"))[:MAX_CHILDREN]]
    return Part(
        type=text(raw, "type") or "unknown",
        name=text(raw, "name") or "unknown",
        bases=strings(raw, "bases"),
        file=text(raw, "file"),
        line=integer(raw, "line"),
        module_file=text(raw, "module_file"),
        qualname=text(raw, "qualname"),
        length=integer(raw, "length"),
        getitem=strings(raw, "getitem"),
        getitems=strings(raw, "getitems"),
        iter=strings(raw, "iter"),
        call=strings(raw, "call"),
        names=strings(raw, "names"),
        attributes=tuple(_attribute(item) for item in _dicts(raw.get("attributes"))[:MAX_ATTRIBUTES]),
        children=tuple(child for child in children if child is not None),
    )


def _attribute(raw: Mapping[str, Any]) -> Attribute:
    return Attribute(
        name=text(raw, "name") or "unknown",
        kind=text(raw, "kind") or "other",
        type=text(raw, "type") or "unknown",
        shape=_shape(raw.get("shape")),
        dtype=text(raw, "dtype"),
        nbytes=integer(raw, "nbytes"),
        contiguous=_flag(raw, "contiguous"),
        device=text(raw, "device"),
        length=integer(raw, "length"),
        suffix=text(raw, "suffix"),
        items=text(raw, "items"),
    )


def _leaf(raw: Mapping[str, Any]) -> Leaf:
    return Leaf(
        path=text(raw, "path") or "",
        kind=text(raw, "kind") or "other",
        dtype=text(raw, "dtype"),
        shape=_shape(raw.get("shape")),
        nbytes=integer(raw, "nbytes"),
        device=text(raw, "device"),
        pinned=_flag(raw, "pinned"),
        whole_255ths=_flag(raw, "whole_255ths"),
        padding_share=number(raw, "padding_share"),
    )


def _dicts(raw: Any) -> list[dict[str, Any]]:
    return [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []


def _shape(raw: Any) -> tuple[int, ...] | None:
    if not isinstance(raw, list) or not all(type(n) is int and n >= 0 for n in raw):
        return None
    return tuple(raw)


def _flag(raw: Mapping[str, Any], key: str) -> bool | None:
    value = raw.get(key)
    return value if isinstance(value, bool) else None
