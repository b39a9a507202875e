"""Describes the parts of a DataLoader as JSON values for `inspection`, without running them.

Done once per loader, before its first loop is timed. Depth, number and size are bounded. Parts that
cannot be looked at are left out, and nothing here raises.
"""

from __future__ import annotations

import os
import types
from contextlib import suppress
from typing import Any

from ...base.metadata import Facts
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
from .lengths import known_length
from .samplers import own_of, sampling_of

INSPECT_VARIABLE = "LOADERSCOPE_INSPECT"  # 0: look at no data set, function or batch
TURNED_OFF = f"not looked at: {INSPECT_VARIABLE}=0"

MAX_PARTS = 64
MAX_BASES = 16
FEW = 16  # searching so many takes no time
MAX_HELPERS = 4  # functions that access methods call: room is left for the source of other parts
MAX_ALL_ATTRIBUTES = 1024  # of all parts together: readers of a loader's file stop at 1 MiB

_ACCESS = {"getitem": "__getitem__", "getitems": "__getitems__", "iter": "__iter__"}
_PLAIN = ("object", "typing.Generic", "typing.Protocol")


def inspection_wanted() -> bool:
    """Whether the user allows looking at parts and batches."""
    return os.environ.get(INSPECT_VARIABLE, "").strip() != "0"


def inspect_loader(loader: Any) -> Facts:
    """What is known of the loader's data set, samplers and functions; {} if it keeps them in an
    unknown way."""
    found: Facts = {}
    with suppress(Exception), unseen():
        own = own_of(loader)
        inspector = _Inspector()
        for name, value in _parts(own).items():
            if value is not None:
                with suppress(Exception):
                    is_function = name in ("collate", "worker_init")
                    found[name] = (inspector.function if is_function else inspector.part)(value)
    return found


def _parts(own: Facts) -> Facts:
    """The loader's parts. Torch makes an unused sampler beside a user's batch sampler, which is
    left out."""
    drawn, batch_sampler = sampling_of(own), own.get("batch_sampler")
    sampler = drawn.sampler
    if sampler is batch_sampler:
        sampler = own.get("sampler") if drawn.batching == "batch_size" else None
    return {
        "dataset": own.get("dataset"),
        "sampler": sampler,
        "batch_sampler": batch_sampler,
        "collate": own.get("collate_fn"),
        "worker_init": own.get("worker_init_fn"),
    }


class _Inspector:
    """One inspection, with its limits."""

    def __init__(self) -> None:
        self._sources = Sources()
        self._seen: set[int] = set()
        self._attributes_remaining = MAX_ALL_ATTRIBUTES

    def part(self, value: Any, depth: int = 0) -> Facts:
        """A data set or sampler, with those it wraps."""
        self._seen.add(id(value))
        cls = type(value)
        own = instance_vars(value)
        facts = _identity(value)
        with suppress(Exception):
            facts["length"] = known_length(value)
        with suppress(Exception):
            facts["attributes"] = self._described(own)
        with suppress(Exception):
            self._access(cls, facts)
        if depth < MAX_DEPTH:
            with suppress(Exception):
                facts["children"] = self._children(own, depth)
        return facts

    def function(self, value: Any) -> Facts:
        """A function, or an object that is called like one."""
        facts = _identity(value)
        called = function_of(value)
        if called is not None and not is_known(called.__module__):
            cls: type | None = type(value)
            if cls is types.MethodType:
                cls = type(value.__self__)
            elif called is underlying(value):
                cls = None
            facts |= _place(called)
            facts["call"] = list(self._sources.lines(called))
            facts["names"] = names_used([called], cls)
        return facts

    def _access(self, cls: type, facts: Facts) -> None:
        """Source and names of the methods that give samples."""
        used: list[types.FunctionType] = []
        for key, name in _ACCESS.items():
            method = function_of(in_class(cls, name))
            if method is None or is_known(method.__module__):
                continue
            if not used:
                facts |= _place(method)
            used.append(method)
            facts[key] = list(self._sources.lines(method))
        own = len(used)
        facts["names"] = names_used(used, cls)
        facts["helpers"] = [list(self._sources.lines(each)) for each in used[own:][:MAX_HELPERS]]
        facts["globals"] = self._described(_long_lists(used, facts["names"]))

    def _described(self, values: Facts) -> list[Facts]:
        found = describe_attributes(values, self._attributes_remaining)
        self._attributes_remaining -= len(found)
        return found

    def _children(self, own: Facts, depth: int) -> list[Facts]:
        found: list[Facts] = []
        for value in _wrapped(own):
            room = len(self._seen) < MAX_PARTS and len(found) < MAX_CHILDREN
            if room and id(value) not in self._seen:
                found.append(self.part(value, depth + 1))
        return found


def _long_lists(functions: list[types.FunctionType], names: list[str]) -> Facts:
    """The lists and tuples of more than FEW items that these names are in their modules."""
    found: Facts = {}
    for function in functions:
        for name in names if type(function.__globals__) is dict else ():
            value: Any = function.__globals__.get(name)
            if is_one_of(type(value), (list, tuple)) and len(value) > FEW:
                found[name] = value
    return found


def _place(function: types.FunctionType) -> Facts:
    code = function.__code__
    return {"file": code.co_filename, "line": code.co_firstlineno}


def _identity(value: Any) -> Facts:
    held = underlying(value)
    cls = held if inherits(type(held), type) else type(held)
    bases = [class_name(base) for base in mro(cls)]
    return {
        **defined_in(held if type(held) is types.FunctionType else cls),
        "type": qualified_name(value),
        "name": short_name(value),
        "bases": [base for base in bases if base not in _PLAIN][:MAX_BASES],
    }


def _wrapped(own: Facts) -> list[Any]:
    """Data sets and samplers among these attributes, and in sequences among them."""
    from torch.utils.data import Sampler

    held: list[Any] = []
    for value in own.values():
        held += value[:MAX_CHILDREN] if is_one_of(type(value), (list, tuple)) else (value,)
    sets = [loaded("datasets").get(name) for name in ("Dataset", "IterableDataset")]
    return [
        item
        for item in held
        if is_dataset(item) or inherits(type(item), Sampler) or is_one_of(type(item), sets)
    ]
