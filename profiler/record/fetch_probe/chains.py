"""Finds the chains of callables that a data set holds, as `Compose` does, and replaces them while a
sample times them.

The search reads attributes and calls nothing of the user's. Owners without plain attributes (slots,
properties, their own `__setattr__`) are left alone.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from ...guard.error_origin import forgiving
from ...guard.static_access import (
    PLAIN,
    contents,
    in_class,
    inherits,
    instance_vars,
    is_callable,
    is_one_of,
    short_name,
    unseen,
)
from .chain_timing import Times, timed

MAX_DEPTH = 4
MAX_OBJECTS = 256
MAX_ATTRIBUTES = 128
MAX_ITEMS = 64  # a longer list is data
MAX_CHAINS = 16
MAX_PATH = 120

# The usual attributes of chains, which are named after their owner alone.
_USUAL = ("transforms", "_modules")
# Never opened: values, and what is large or not the user's. Other builtins hold no attributes.
_LEAVES = (*PLAIN, bytes, types.ModuleType)
_CONTAINERS = (list, tuple, dict)
_FOREIGN = (
    "numpy",
    "pandas",
    "pyarrow",
    "h5py",
    "lmdb",
    "threading",
    "logging",
    "multiprocessing",
    "io",
    "_io",
)

Step = tuple[str, int, str, int, int]  # as ChainTotals


class Link(NamedTuple):
    """An attribute that holds a chain. `chain` is the path to it in code."""

    owner: Any
    attribute: str
    held: Any
    chain: str


class Chains:
    """The chains of a data set. They are timed between `start` and `stop`, in the thread that
    called `start`."""

    def __init__(self) -> None:
        # By owner, held weakly: attribute, id of the chain, and its path.
        self._known: list[tuple[weakref.ref[Any], str, int, str]] = []
        self._searched = (0, 0)
        self._starts = 0
        self._under_way: list[tuple[Link, Any, list[Any], Times]] = []

    def start(self, dataset: Any, epoch: int = 0) -> bool:
        """Begin to time the chains of this data set; False if there is none."""
        if self._searched != (id(dataset), epoch):
            self._searched, self._known, self._starts = (id(dataset), epoch), [], 0
        self._starts += 1
        links = list(self._links())
        # A data set may make its chains late, but each search costs time.
        if not links and self._starts & (self._starts - 1) == 0:
            links = find_chains(dataset)
        self._known = []
        for link in links:
            with suppress(TypeError):  # an owner that cannot be held weakly
                owner = weakref.ref(link.owner)
                self._known.append((owner, link.attribute, id(link.held), link.chain))
            items = _items(link.held)
            times = Times(len(items))
            stand_in = timed(link.held, times)
            self._under_way.append((link, stand_in, items, times))
            object.__setattr__(link.owner, link.attribute, stand_in)
        return bool(self._under_way)

    def stop(self) -> list[Step]:
        """Put the chains back; returns the times of each callable. Safe to call at any time."""
        under_way = self._under_way[:]
        while self._under_way:
            # Removed last: a signal handler may raise before, and `stop` be called again.
            link, stand_in, items, times = self._under_way[-1]
            times.active = False
            with forgiving():
                held = _of(link.owner, link.attribute)
                if held is stand_in or held is link.held:
                    object.__setattr__(link.owner, link.attribute, link.held)
                    _carry_over(stand_in, link.held, items)
            self._under_way.pop()
        return [
            (link.chain, position, short_name(items[position]), calls, total_ns)
            for link, _, items, times in under_way
            for position, (calls, total_ns) in enumerate(times.steps)
            if calls
        ]

    def _links(self) -> Iterator[Link]:
        """The known chains that are still there. (A new one at the same address counts too.)"""
        for known, attribute, held_id, chain in self._known:
            owner = known()
            held = _of(owner, attribute)
            if id(held) == held_id and _is_chain(attribute, held, owner):
                yield Link(owner, attribute, held, chain)


def find_chains(dataset: Any) -> list[Link]:
    """The chains within reach of this data set, nearest first. Runs none of the user's code."""
    found: list[Link] = []
    with forgiving(), unseen():
        found.extend(islice(_walk(dataset), MAX_CHAINS))
    return found


def _walk(dataset: Any) -> Iterator[Link]:
    seen: set[int] = {id(dataset)}
    waiting: deque[tuple[Any, str, int]] = deque([(dataset, "dataset", 0)])
    while waiting:
        value, path, depth = waiting.popleft()
        yield from _chains_of(value, path)
        deeper = depth + (not is_one_of(type(value), _CONTAINERS))
        if deeper > MAX_DEPTH:
            continue
        for below, name in _below(value, path):
            if (
                len(seen) < MAX_OBJECTS
                and id(below) not in seen
                and len(name) <= MAX_PATH
                and _is_open(below)
            ):
                seen.add(id(below))
                waiting.append((below, name, deeper))


def _chains_of(value: Any, path: str) -> Iterator[Link]:
    if not _is_plain_owner(value):
        return
    for attribute, held in _attributes(value):
        # Setting a data descriptor of the class would run its code.
        descriptor = in_class(type(in_class(type(value), attribute)), "__set__")
        is_own = descriptor is None and _of(value, attribute) is held
        if is_own and _is_chain(attribute, held, value):
            yield Link(value, attribute, held, _path(path, attribute))


def _is_chain(attribute: str, held: Any, owner: Any) -> bool:
    kind = type(held)
    if not is_one_of(kind, _CONTAINERS):
        return False
    if kind is dict:
        from torch.nn import ModuleList, Sequential

        known = inherits(type(owner), Sequential) or inherits(type(owner), ModuleList)
        if attribute != "_modules" or not known:
            return False
    return 2 <= len(held) <= MAX_ITEMS and all(
        is_callable(item) and not inherits(type(item), type) for item in _items(held)
    )


def _below(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """What an object holds, and how code reaches it."""
    kind = type(value)
    if is_one_of(kind, _CONTAINERS):
        if len(value) <= MAX_ITEMS:
            items = value.items() if kind is dict else enumerate(value)
            for name, item in list(items):
                if type(name) is str:
                    yield item, _path(path, name)
                elif kind is not dict:
                    yield item, f"{path}[{name}]"
    elif kind is functools.partial:
        yield value.func, path
        yield from ((item, path) for item in [*value.args, *value.keywords.values()])
    elif kind is types.MethodType:
        yield value.__self__, path
    elif kind is types.FunctionType:
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # empty as yet
                yield cell.cell_contents, path
    else:
        yield from ((held, _path(path, name)) for name, held in _attributes(value))


def _path(path: str, name: str) -> str:
    if not name.isidentifier():
        return f"{path}[{name}]" if name.isdecimal() else f"{path}[{name!r}]"
    return path if name in _USUAL and path != "dataset" else f"{path}.{name}"


def _attributes(value: Any) -> list[tuple[str, Any]]:
    return list(instance_vars(value).items())[:MAX_ATTRIBUTES]


def _is_open(value: Any) -> bool:
    """Whether it is worth looking into."""
    import torch

    kind = type(value)
    if is_one_of(kind, _LEAVES) or inherits(kind, type) or inherits(kind, torch.Tensor):
        return False
    module = in_class(kind, "__module__")
    name = module if type(module) is str else ""
    # torch's own wrapper of a compiled module checks that what is inside stays what it was.
    return name.partition(".")[0] not in _FOREIGN and not name.startswith("torch._dynamo")


def _is_plain_owner(value: Any) -> bool:
    """Whether setting an attribute of it does that and nothing else."""
    import torch

    plain = (object.__setattr__, torch.nn.Module.__setattr__)
    return is_one_of(in_class(type(value), "__setattr__"), plain)


def _of(owner: Any, attribute: str) -> Any:
    try:
        return object.__getattribute__(owner, attribute)
    except AttributeError:
        return None


def _items(held: Any) -> list[Any]:
    return list(held.values()) if type(held) is dict else list(held)


def _carry_over(stand_in: Any, original: Any, before: list[Any]) -> None:
    """Changes made to the stand-in during the sample are made to the original."""
    if type(original) is tuple:
        return
    now = contents(stand_in) or ()
    if [id(item) for _, item in now] == list(map(id, before)):
        return
    if type(original) is dict:
        original.clear()
        original.update(dict.items(stand_in))
    else:
        original[:] = list.__iter__(stand_in)
