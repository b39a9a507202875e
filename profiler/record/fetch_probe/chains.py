"""Chains of callables held by a data set, as `Compose` has them, and their replacement while a
sample times them.

Found by walking over attributes alone: nothing of the user's is called. An owner whose attributes
are not plain ones (slots, properties, a `__setattr__` of its own) is left alone.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ...guard.error_origin import is_ours
from ...guard.static_access import (
    in_class,
    inherits,
    instance_vars,
    is_callable,
    is_one_of,
    short_name,
    unseen,
)
from .chain_timing import Times, plain, timed

MAX_DEPTH = 4
MAX_OBJECTS = 256
MAX_ATTRIBUTES = 128
MAX_ITEMS = 64  # a longer list is data
MAX_CHAINS = 16
MAX_PATH = 120

# Attributes by which well known chains hold their callables: such a chain is named after its owner
# alone.
_USUAL = ("transforms", "_modules")
# Never looked into: values, code, and what is large or not the user's.
_LEAVES = (
    str,
    bytes,
    bytearray,
    int,
    float,
    bool,
    complex,
    type(None),
    range,
    slice,
    set,
    frozenset,
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.GeneratorType,
    types.CodeType,
)
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
    """Where a chain hangs: an attribute of `owner`. `chain` is how code reaches it from the
    loader."""

    owner: Any
    attribute: str
    held: Any
    chain: str


class _Known:
    """A link found before. It keeps nothing of the user's alive."""

    def __init__(self, link: Link) -> None:
        """Raises TypeError for an owner that cannot be held weakly."""
        self._owner = weakref.ref(link.owner)
        self._attribute = link.attribute
        self._held = id(link.held)
        self._chain = link.chain

    def link(self) -> Link | None:
        """The link, if the chain is still there. Another one may have come to lie where it lay;
        then that is meant."""
        owner = self._owner()
        held = _of(owner, self._attribute)
        if id(held) != self._held or not _is_chain(self._attribute, held, owner):
            return None
        return Link(owner, self._attribute, held, self._chain)


class Chains:
    """The chains of one data set. Between `start` and `stop` they are timed, in the thread that
    called `start`."""

    def __init__(self, dataset: Callable[[], Any]) -> None:
        """`dataset` gives the data set as long as there is one: whoever uses it may let go of it at
        any time."""
        self._dataset = dataset
        self._known: list[_Known] = []
        self._starts = 0
        self._under_way: list[tuple[Link, Any, list[Any], Times]] = []

    def start(self) -> bool:
        """Begin to time; False where there is no chain. Leaves everything as it was if it fails."""
        self._starts += 1
        links = [link for known in self._known if (link := known.link()) is not None]
        # A data set may make its chains late; looking again and again would cost too much.
        if not links and self._starts & (self._starts - 1) == 0:
            links = find_chains(self._dataset())
        self._known = list(_known(links))
        for link in links:
            items = _items(link.held)
            times = Times(len(items))
            stand_in = timed(link.held, times)
            self._under_way.append((link, stand_in, items, times))
            object.__setattr__(link.owner, link.attribute, stand_in)
        return bool(self._under_way)

    def stop(self) -> list[Step]:
        """Put everything back; returns what each callable took. Safe to call at any time."""
        under_way = self._under_way[:]
        found: list[Step] = []
        while self._under_way:
            # Removed when it is done: a signal's handler may raise in between, and `stop` be called
            # again.
            link, stand_in, items, times = self._under_way[-1]
            times.active = False
            try:
                held = _held(link)
                if held is stand_in or held is link.held:
                    object.__setattr__(link.owner, link.attribute, link.held)
                    _carry_over(stand_in, link.held, items)
            except Exception as error:
                if not is_ours(error):
                    raise
            self._under_way.pop()
        for link, _, items, times in under_way:
            for position, (calls, total_ns) in enumerate(times.steps):
                if calls:
                    found.append(
                        (link.chain, position, short_name(items[position]), calls, total_ns)
                    )
        return found


def _known(links: list[Link]) -> Iterator[_Known]:
    for link in links:
        with suppress(TypeError):
            yield _Known(link)


def find_chains(dataset: Any) -> list[Link]:
    """The chains that can be reached from this data set, nearest first. Runs no code of the user's;
    never raises."""
    found: list[Link] = []
    try:
        with unseen():
            for link in _walk(dataset):
                found.append(link)
                if len(found) >= MAX_CHAINS:
                    break
    except Exception as error:
        if not is_ours(error):
            raise
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
        if not _is_chain(attribute, held, value) or _is_descriptor(type(value), attribute):
            continue
        link = Link(value, attribute, held, _path(path, attribute))
        if _held(link) is held:
            yield link


def _is_chain(attribute: str, held: Any, owner: Any) -> bool:
    kind = type(held)
    if kind is dict:
        from torch.nn import ModuleList, Sequential

        if attribute != "_modules" or not any(
            inherits(type(owner), base) for base in (Sequential, ModuleList)
        ):
            return False
    elif not is_one_of(kind, (list, tuple)):
        return False
    items = _items(held) if 2 <= len(held) <= MAX_ITEMS else []
    return bool(items) and all(map(_is_step, items))


def _is_step(item: Any) -> bool:
    return is_callable(item) and not inherits(type(item), type)


def _below(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """What an object holds, and how code reaches it."""
    kind = type(value)
    if is_one_of(kind, (list, tuple)):
        if len(value) <= MAX_ITEMS:
            yield from ((item, f"{path}[{i}]") for i, item in enumerate(value))
    elif kind is dict:
        if len(value) <= MAX_ITEMS:
            yield from (
                (item, _path(path, name)) for name, item in list(value.items()) if type(name) is str
            )
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
    if is_one_of(
        type(value), (list, tuple, dict, functools.partial, types.MethodType, types.FunctionType)
    ):
        return []
    return list(instance_vars(value).items())[:MAX_ATTRIBUTES]


def _is_open(value: Any) -> bool:
    """Whether it is worth looking into."""
    import torch

    kind = type(value)
    if is_one_of(kind, _LEAVES) or inherits(kind, type) or inherits(kind, torch.Tensor):
        return False
    module = in_class(kind, "__module__")
    # torch's own wrapper of a compiled module checks that what is inside stays what it was.
    return not (
        type(module) is str
        and (module.partition(".")[0] in _FOREIGN or module.startswith("torch._dynamo"))
    )


def _is_plain_owner(value: Any) -> bool:
    """Whether setting an attribute of it does that and nothing else."""
    import torch

    setter = in_class(type(value), "__setattr__")
    return is_one_of(setter, (object.__setattr__, torch.nn.Module.__setattr__))


def _is_descriptor(cls: type, attribute: str) -> bool:
    held = in_class(cls, attribute)
    return held is not None and in_class(type(held), "__set__") is not None


def _held(link: Link) -> Any:
    """What the attribute holds now."""
    return _of(link.owner, link.attribute)


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
    now = list(dict.values(stand_in)) if type(original) is dict else plain(stand_in)
    if len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True)):
        return
    if type(original) is dict:
        original.clear()
        original.update(dict.items(stand_in))
    else:
        original[:] = now
