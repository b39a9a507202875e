"""The parts of a DataLoader as JSON values, found without running any of them: what `inspection`
reads.

Done once a loader, before its first loop is timed. Bounded in depth, number and size; what cannot
be looked at is left out, and nothing here raises.
"""

from __future__ import annotations

import json
import os
import types
from contextlib import suppress
from typing import Any

from ...guard.static_access import (
    class_name,
    defined_in,
    in_class,
    inherits,
    instance_vars,
    is_one_of,
    loaded,
    mro,
    qualified_name,
    short_name,
    underlying,
    unseen,
)
from ...store.inspection import MAX_CHILDREN, MAX_DEPTH
from .inspect_attributes import describe_attributes, is_dataset
from .inspect_source import Sources, function_of, is_known, names_used
from .samplers import own_of, sampling_of

INSPECT_VARIABLE = "LOADERSCOPE_INSPECT"  # 0: look at no data set, function or batch
TURNED_OFF = f"not looked at: {INSPECT_VARIABLE}=0"

MAX_PARTS = 64
MAX_BASES = 16
# Of all parts together, and of the whole as JSON: a loader's file is read up to a mebibyte.
MAX_ALL_ATTRIBUTES = 1024
MAX_ALL_NAMES = 2048
MAX_JSON_CHARACTERS = 600_000

_ACCESS = {"getitem": "__getitem__", "getitems": "__getitems__", "iter": "__iter__"}
_NEEDED = ("type", "name", "bases", "module_file", "qualname")
_PLAIN = ("object", "typing.Generic", "typing.Protocol")


def inspection_wanted() -> bool:
    """Whether the user lets us look at parts and batches."""
    return os.environ.get(INSPECT_VARIABLE, "").strip() != "0"


def inspect_loader(loader: Any) -> dict[str, Any]:
    """What is known of the loader's data set, samplers and functions; {} where it keeps them in no
    way we know."""
    found: dict[str, Any] = {}
    with suppress(Exception), unseen():
        own = own_of(loader)
        inspector = _Inspector()
        for name, value in _parts(own):
            if value is not None:
                with suppress(Exception):
                    found[name] = inspector.part(value, 0)
        for name, key in (("collate", "collate_fn"), ("worker_init", "worker_init_fn")):
            if own.get(key) is not None:
                with suppress(Exception):
                    found[name] = inspector.function(own[key])
        if len(json.dumps(found)) > MAX_JSON_CHARACTERS:
            found = {
                name: {key: part[key] for key in _NEEDED if key in part}
                for name, part in found.items()
            }
    return found


def _parts(own: dict[str, Any]) -> list[tuple[str, Any]]:
    """The data set, what draws its samples (not the sampler that torch makes and leaves unused
    beside a batch sampler of the user's), and the batch sampler."""
    drawn, batch_sampler = sampling_of(own), own.get("batch_sampler")
    sampler = drawn.sampler
    if sampler is batch_sampler:
        sampler = own.get("sampler") if drawn.batching == "batch_size" else None
    return [("dataset", own.get("dataset")), ("sampler", sampler), ("batch_sampler", batch_sampler)]


class _Inspector:
    """One inspection: what it has seen, and what it may still spend."""

    def __init__(self) -> None:
        self._sources = Sources()
        self._seen: set[int] = set()
        self._left = MAX_PARTS
        self._attributes_left = MAX_ALL_ATTRIBUTES
        self._names_left = MAX_ALL_NAMES

    def part(self, value: Any, depth: int) -> dict[str, Any]:
        """A data set or sampler, with those it wraps."""
        self._seen.add(id(value))
        self._left -= 1
        cls = type(value)
        own = instance_vars(value)
        facts = _identity(value)
        with suppress(Exception):
            facts["length"] = _length(cls, own, value)
        with suppress(Exception):
            facts["attributes"] = describe_attributes(own, self._attributes_left)
            self._attributes_left -= len(facts["attributes"])
        with suppress(Exception):
            self._access(cls, facts)
        if depth < MAX_DEPTH:
            with suppress(Exception):
                facts["children"] = self._children(own, depth)
        return facts

    def function(self, value: Any) -> dict[str, Any]:
        """A function, or an object that is called like one."""
        facts = _identity(value)
        called = function_of(value)
        if called is not None and not is_known(called.__module__):
            method = type(value) is types.MethodType
            cls = (
                type(value.__self__)
                if method
                else None
                if called is underlying(value)
                else type(value)
            )
            self._place(called, facts)
            facts["call"] = list(self._sources.lines(called))
            facts["names"] = self._names([called], cls)
        return facts

    def _access(self, cls: type, facts: dict[str, Any]) -> None:
        """Source and names of the methods by which samples are had."""
        used: list[types.FunctionType] = []
        for key, name in _ACCESS.items():
            method = function_of(in_class(cls, name)) if in_class(cls, name) is not None else None
            if method is None or is_known(method.__module__):
                continue
            if not used:
                self._place(method, facts)
            used.append(method)
            facts[key] = list(self._sources.lines(method))
        facts["names"] = self._names(used, cls)

    def _names(self, functions: list[types.FunctionType], cls: type | None) -> list[str]:
        names = list(names_used(functions, cls))[: self._names_left]
        self._names_left -= len(names)
        return names

    @staticmethod
    def _place(function: Any, facts: dict[str, Any]) -> None:
        facts["file"], facts["line"] = (
            function.__code__.co_filename,
            function.__code__.co_firstlineno,
        )

    def _children(self, own: dict[str, Any], depth: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for value in _wrapped(own):
            if self._left > 0 and len(found) < MAX_CHILDREN and id(value) not in self._seen:
                found.append(self.part(value, depth + 1))
        return found


def _identity(value: Any) -> dict[str, Any]:
    held = underlying(value)
    cls = held if inherits(type(held), type) else type(held)
    bases = [class_name(base) for base in mro(cls)]
    return {
        **defined_in(held if type(held) is types.FunctionType else cls),
        "type": qualified_name(value),
        "name": short_name(value),
        "bases": [base for base in bases if base not in _PLAIN][:MAX_BASES],
    }


def _wrapped(own: dict[str, Any]) -> list[Any]:
    """Data sets and samplers among these attributes, and among the items of short sequences of
    them."""
    from torch.utils.data import Sampler

    found: list[Any] = []
    for value in own.values():
        items = value[:MAX_CHILDREN] if is_one_of(type(value), (list, tuple)) else (value,)
        found += [
            item
            for item in items
            if is_dataset(item) or inherits(type(item), Sampler) or _is_hf(item)
        ]
    return found


def _is_hf(value: Any) -> bool:
    sets = loaded("datasets")
    return bool(sets) and is_one_of(type(value), (sets.get("Dataset"), sets.get("IterableDataset")))


def _length(cls: type, own: dict[str, Any], value: Any) -> int | None:
    """Samples, of kinds whose own `__len__` need not be run to know."""
    import torch

    if is_one_of(cls, (list, tuple, dict, str, range)):
        return len(value)
    if cls is torch.Tensor:
        return int(value.shape[0]) if value.dim() else None
    if _is_hf(value):
        return int(value.num_rows) if cls.__name__ == "Dataset" else None
    name = class_name(cls)
    if name == "torch.utils.data.dataset.TensorDataset":
        return int(own["tensors"][0].shape[0])
    if name == "torch.utils.data.dataset.Subset" and is_one_of(
        type(own["indices"]), (list, tuple, range)
    ):
        return len(own["indices"])
    if name == "torch.utils.data.dataset.ConcatDataset":
        return int(own["cumulative_sizes"][-1])
    return None
