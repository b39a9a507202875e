"""What an object holds that may change in place. None of the object's code runs."""

import functools
import os
import pickle
import random
import sys
import types
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain, islice
from operator import is_
from typing import Any

from ...profiler.guard.static_access import in_class, inherits, is_one_of, mro, unseen

PLAIN = (bool, int, float, complex, str, bytes, type(None))
MOST_ITEMS = 10_000  # of a container, looked into

Values = Callable[[], Iterable[Any]]


class Part:
    """A container, or a part of a long one, with its earlier content."""

    def __init__(
        self,
        name: str,
        values: Values,
        keys: Values | None = None,
        of: str | None = None,
        plain: bool = False,
        later: bool = False,
    ) -> None:
        """Values are compared by identity, plain ones (numbers or bytes, in a tuple) by equality.
        `keys`: of the values, if not their positions. `of`: a prefix for keys in sentences ("the
        global "). `later`: read it for the first time at the first comparison."""
        self.name, self.values, self._keys, self._of, self.plain = name, values, keys, of, plain
        self.saved: tuple[Any, ...] | None = None if later else tuple(values())
        self.saved_keys = self._keys_of(self.saved or ())

    def changed(self) -> str | None:
        """The name of what has changed; None if nothing has."""
        try:
            now, saved = tuple(self.values()), self.saved
            if saved is not None and len(now) == len(saved) and all(map(is_, now, saved)):
                return None
            keys = self._keys_of(now)
        except RuntimeError:  # another thread changes it
            return self.name
        held = dict(zip(keys, now, strict=False))
        was = held if saved is None else dict(zip(self.saved_keys, saved, strict=False))
        for key in {**was, **held}:
            if not _equal(held.get(key, self), was.get(key, now)):
                return self.name if self._of is None else f"{self._of}{key}"
        self.saved, self.saved_keys = now, keys
        return None

    def _keys_of(self, values: tuple[Any, ...]) -> Sequence[Any]:
        return range(len(values)) if self._keys is None else tuple(self._keys())


def _equal(one: Any, other: Any) -> bool:
    return one is other or (
        type(one) is type(other) and is_one_of(type(one), PLAIN) and bool(one == other)
    )


def changeable(values: Collection[Any]) -> list[Any]:
    """The values of a container that can change in place."""
    kinds = dict.fromkeys(map(type, values))
    if all(is_one_of(kind, (*PLAIN, tuple)) for kind in kinds):
        inside = chain.from_iterable(each for each in values if type(each) is tuple)
        if all(is_one_of(kind, PLAIN) for kind in dict.fromkeys(map(type, inside))):
            return []
    return [each for each in islice(values, MOST_ITEMS) if not is_one_of(type(each), PLAIN)]


def attributes(value: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes, not a copy; None if it has none, or makes its own."""
    held = in_class(type(value), "__dict__")
    if type(held) is not types.GetSetDescriptorType:
        return None
    found = held.__get__(value)
    return found if type(found) is dict else None


def slots_of(kind: type) -> tuple[Any, ...]:
    """The slots of classes written in Python."""
    bodies = (vars(type)["__dict__"].__get__(base) for base in mro(kind))
    return tuple(
        held
        for body in bodies
        if "__slots__" in body
        for held in body.values()
        if type(held) is types.MemberDescriptorType
    )


def slot_values(value: Any, slots: tuple[Any, ...]) -> dict[str, Any]:
    found = {}
    for slot in slots:
        try:
            found[slot.__name__] = slot.__get__(value)
        except AttributeError:  # not set
            continue
    return found


def cell_content(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty yet
        return ()


def environment() -> dict[Any, Any]:
    """The dict of the environment's variables, not a copy."""
    held: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]
    return held


def hidden(value: Any) -> list[Any]:
    """What some well-known objects written in C hold."""
    kind = type(value)
    if kind is functools.partial:
        return [value.func, value.args, value.keywords]
    if kind is types.MethodType:
        return [value.__self__, value.__func__]
    if kind is types.FunctionType:
        return [each for each in (value.__defaults__, value.__kwdefaults__) if each]
    pandas = sys.modules.get("pandas")
    if pandas is not None and is_one_of(kind, (pandas.DataFrame, pandas.Series)):
        return list(value._mgr.arrays)
    return []


def state_of(value: Any) -> Callable[[], tuple[Any, ...]] | None:
    """How to read the state of a generator of random numbers, or the version of a tensor."""
    import torch

    kind = type(value)
    if inherits(kind, torch.Tensor):
        with unseen():
            if value.is_inference():
                return None
        plain = is_one_of(kind, (torch.Tensor, torch.nn.Parameter))
        return (lambda: (value._version,)) if plain else lambda: (_version_of(value),)
    if kind is torch.Generator:
        return lambda: (bytes(value.get_state().numpy()),)
    if kind is random.Random:
        return lambda: (pickle.dumps(value.getstate()),)
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None and is_one_of(kind, (numpy.Generator, numpy.RandomState)):
        bits = value._bit_generator if kind is numpy.RandomState else value.bit_generator
        return lambda: (pickle.dumps(bits.state),)
    return None


def _version_of(tensor: Any) -> Any:
    with unseen():
        return tensor._version


def memory_of(value: Any) -> Callable[[], memoryview] | None:
    """How to read the memory of an array or a CPU tensor; None of other objects, and of what is
    empty or read-only.

    What it returns is to be let go at once: pickling a tensor for a process that is not forked
    moves it to shared memory and frees what it was in, and a bytearray that is viewed cannot grow.
    """
    import torch

    view = _bytes_of(value)
    if view is None or not view.nbytes:
        return None
    if type(value) is bytearray:
        return lambda: memoryview(value)
    if not inherits(type(value), torch.Tensor):
        return lambda: view
    with unseen():
        storage = value.untyped_storage()
    at, now = storage.data_ptr(), view

    def read() -> memoryview:
        nonlocal at, now
        if storage.data_ptr() != at:
            at, now = storage.data_ptr(), _bytes_of(value) or memoryview(b"")
        return now

    return read


def _bytes_of(value: Any) -> memoryview | None:
    import numpy as np
    import torch

    kind = type(value)
    if kind is bytearray:
        return memoryview(value)
    if inherits(kind, torch.Tensor):
        with unseen(), suppress(RuntimeError, NotImplementedError):  # of no storage of its own
            if value.device.type != "cpu" or value.layout is not torch.strided:
                return None
            if value.is_contiguous() and not value.is_neg() and not value.is_conj():
                start = value.storage_offset() * value.element_size()
                length = value.numel() * value.element_size()
            else:  # all that it is a view of
                start, length = 0, value.untyped_storage().nbytes()
            held = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage())
            return memoryview(held[start : start + length].numpy())  # type: ignore[arg-type]
        return None
    if not is_one_of(kind, (np.ndarray, np.memmap)):
        return None
    if not value.flags.c_contiguous and type(value.base) is np.ndarray:
        value = value.base
    if not value.flags.writeable or value.dtype.hasobject or not value.flags.forc:
        return None
    return memoryview(value.reshape(-1, order="A").view(np.uint8))
