"""What objects are made of, as far as code can see it, and whether that is still so.

A loader can be tuned where its batches depend on their indices alone. `State` notes what its data
set, collate function or sampler hold and what their code names (class attributes, globals,
closures, the environment), and compares that with what is there later. Objects are compared by
identity, and by content where they change in place. None of their code runs.

What is near (a few hundred containers) is compared each time; what is far (long lists, large
arrays) in turns, a part each time.
"""

from __future__ import annotations

import os
import types
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import is_
from typing import Any, Protocol

from ..profiler.base.clock import now_ns
from ..profiler.guard.error_origin import forgiving
from ..profiler.guard.static_access import in_class, inherits, is_one_of, mro, short_name, unseen
from .named_code import NamedCode
from .obstacles import ANYWHERE, obstacle

NEAR, FAR = 256, 10_000  # containers compared each time, and in turns
LONG = 256  # items of a list or dict compared at a time
NEAR_BYTES, ALL_NEAR_BYTES, CHUNK_BYTES = 1 << 16, 1 << 18, 1 << 16
PLAIN = (bool, int, float, complex, str, bytes, type(None))
_SEQUENCES = (list, tuple, deque)
_UNORDERED = (set, frozenset)
_DICTS = (dict, OrderedDict, defaultdict, Counter)
_NO_PARTS = (types.ModuleType, types.BuiltinFunctionType)
# What objects of these modules hold is the interpreter's business: how they hinder other processes
# is known.
_SYSTEM = ("logging", "threading", "multiprocessing", "concurrent", "weakref", "io", "_io")


Found = tuple[Any, str, bool]  # an object, what a sentence calls it, whether it is near


class Part(Protocol):
    """One container, or a part of a long one."""

    name: str

    def same(self) -> bool: ...

    def changed_name(self) -> str:
        """The name of what is not as it was, for a sentence."""


class State:
    """Of some named objects, at the moment when it is made. Making it never raises."""

    def __init__(self, roots: Mapping[str, Any], without: Collection[Any] = ()) -> None:
        """`without`: objects that are left out, with what they hold."""
        self._roots, self._without = roots, without
        self.obstacles: dict[
            str, None
        ] = {}  # what keeps these objects from being used by other processes than now
        self.fork_obstacles: dict[
            str, None
        ] = {}  # and what keeps them from being used in a forked process
        self.writes: str | None = None  # code that seems to write files
        self.large: dict[str, None] = {}  # names of what is compared in turns
        self.buffers: list[memoryview] = []  # of arrays and tensors in memory
        self._near: list[Part] = []
        self._far: list[Part] = []
        self._next = 0
        self._near_bytes = 0
        self._seen: dict[int, Any] = {id(each): each for each in without}
        self._code = NamedCode()
        self._environment = False
        self.complete = False
        with forgiving(Exception):
            self._walk(roots)
            self.complete = len(self._far) < FAR

    def again(self) -> State:
        """Of the same objects, as they are now."""
        return State(self._roots, self._without)

    def changed(self, within_ns: int = 0, full: bool = False) -> str | None:
        """The name of something that is not as it was; None where nothing is. What is far is
        compared for so long at most, or all of it."""
        for part in self._near:
            if not part.same():
                return part.changed_name()
        return self._far_changed(within_ns, full) if self._far else None

    def _far_changed(self, within_ns: int, full: bool) -> str | None:
        until = now_ns() + within_ns
        for count in range(len(self._far)):
            if not full and (count & 7) == 0 and now_ns() >= until:
                break
            part, self._next = self._far[self._next], (self._next + 1) % len(self._far)
            if not part.same():
                return part.changed_name()
        return None

    def aliases(self, address: int, nbytes: int) -> bool:
        """Whether this memory is a part of what the objects hold."""
        import numpy as np

        for each in self.buffers:
            at = np.frombuffer(each, np.uint8).__array_interface__["data"][0] if each.nbytes else 0
            if at < address + nbytes and address < at + each.nbytes:
                return True
        return False

    # Making it: breadth first, so that what is near the objects is compared each time.

    def _walk(self, roots: Mapping[str, Any]) -> None:
        waiting: deque[Found] = deque((value, name, True) for name, value in roots.items())
        while waiting or (waiting := deque(self._named())):
            value, name, near = waiting.popleft()
            if is_one_of(type(value), PLAIN) or id(value) in self._seen:
                continue
            if len(self._far) >= FAR:
                return
            self._seen[id(value)] = value
            waiting.extend(self._inside(value, name, near))

    def _named(self) -> Iterator[Found]:
        """What the code of the objects met so far names, the first time that each name is met."""
        for names in self._code.names():
            part = _Named(*names)
            self._add(part)
            for name, value in zip(part.names, part.values, strict=True):
                yield value, f"{names.about}{name}", True
        for name, cell in self._code.cells():
            self._add(_Cell(cell, f"the variable {name}"))
            yield _content(cell), f"the variable {name}", True
        if self._code.reads_environment and not self._environment:
            self._environment = True
            self._add(_Values(environment(), "the environment"))
        if self._code.prints is not None:
            self.obstacles[f"{self._code.prints} prints"] = None
        if self._code.writes is not None:
            self.writes = f"{self._code.writes} may write to a file"

    def _inside(self, value: Any, name: str, near: bool) -> Iterator[Found]:
        """What an object holds that may change in place; how it itself may change is noted."""
        kind = type(value)
        if is_one_of(kind, _DICTS):
            return self._dict(value, name, near)
        if is_one_of(kind, _SEQUENCES):
            return self._sequence(value, name, near)
        if is_one_of(kind, _UNORDERED):
            self._add(_Items(lambda: tuple(value), 0, tuple(value), name), near)
            return iter(())
        self._code.met(value)
        if is_one_of(kind, _NO_PARTS) or inherits(kind, type):
            return iter(())
        return self._object(value, name, near)

    def _dict(self, value: dict[Any, Any], name: str, near: bool) -> Iterator[Found]:
        if len(value) <= LONG:
            self._add(_Values(value, name), near)
        else:
            self._add(_Token(lambda: len(value), name), near)
            self._long(list(value.values()), lambda: list(value.values()), name)
        near = near and len(value) <= LONG
        return ((each, name, near) for each in _that_change(list(value.values())))

    def _sequence(self, value: Any, name: str, near: bool) -> Iterator[Found]:
        if type(value) is not tuple:
            self._add(_Token(lambda: len(value), name), near)
            if len(value) <= LONG:
                self._add(_Items(lambda: value, 0, tuple(value), name), near)
            else:
                self._long(value, lambda: value, name)
        near = near and len(value) <= LONG
        return ((each, name, near) for each in _that_change(value))

    def _long(self, items: Sequence[Any], now: Callable[[], Sequence[Any]], name: str) -> None:
        for start in range(0, len(items), LONG):
            self._add(
                _Items(now, start, tuple(islice(items, start, start + LONG)), name), near=False
            )

    def _object(self, value: Any, name: str, near: bool) -> Iterator[Found]:
        why = obstacle(value, name)
        if why is not None:
            (self.obstacles if why.where == ANYWHERE else self.fork_obstacles)[why.sentence] = None
        if _module_of(value).partition(".")[0] in _SYSTEM:
            return
        self._content(value, name, near)
        held, slots, owner = attributes(value), _slots(type(value)), short_name(value)
        if held is not None:
            self._add(_Values(held, owner, attributes=True), near)
            yield from ((each, f"{owner}.{key}", near) for key, each in list(held.items()))
        if slots:
            self._add(_Slots(value, slots, owner), near)
            yield from (
                (each, f"{owner}.{key}", near)
                for key, each in zip(slots, slot_values(value, slots), strict=True)
            )
        yield from ((each, name, near) for each in _hidden(value))

    def _content(self, value: Any, name: str, near: bool) -> None:
        """Of arrays, tensors and generators of random numbers."""
        for token in (random_state_of(value), _version_of(value)):
            if token is not None:
                self._add(_Token(token, name), near)
        view = bytes_of(value)
        if view is None or not view.nbytes:
            return
        self.buffers.append(view)
        if near and view.nbytes <= NEAR_BYTES and self._near_bytes + view.nbytes <= ALL_NEAR_BYTES:
            self._near_bytes += view.nbytes
            self._add(_Bytes(view, name))
        else:
            for start in range(0, view.nbytes, CHUNK_BYTES):
                self._add(_Chunk(view[start : start + CHUNK_BYTES], name), near=False)

    def _add(self, part: Part, near: bool = True) -> None:
        if near and len(self._near) < NEAR:
            self._near.append(part)
        elif len(self._far) < FAR:
            self._far.append(part)
            self.large[part.name] = None


# What is compared.


class _Values:
    """The values of a dict, an object's attributes among them."""

    def __init__(self, held: Mapping[Any, Any], name: str, attributes: bool = False) -> None:
        self.held, self.name, self.attributes = held, name, attributes
        self.saved = dict(held)
        self.values = tuple(self.saved.values())

    def same(self) -> bool:
        held, values = self.held, self.values
        if len(held) == len(values):
            try:
                if all(map(is_, held.values(), values)):
                    return True
            except RuntimeError:  # another thread changes it
                return False
        return self._equal()

    def _equal(self) -> bool:
        """Other objects, but the same plain values."""
        now = dict(self.held)
        equal = len(now) == len(self.saved) and all(
            _equal(value, self.saved.get(key, self)) for key, value in now.items()
        )
        if equal:
            self.saved, self.values = now, tuple(now.values())
        return equal

    def changed_name(self) -> str:
        if not self.attributes:
            return self.name
        now = {**self.saved, **self.held}
        other = [
            key for key in now if not _equal(self.held.get(key, self), self.saved.get(key, now))
        ]
        return f"{self.name}.{other[0]}" if other else self.name


class _Named:
    """Some names of a module or a class."""

    def __init__(self, namespace: Mapping[str, Any], names: tuple[str, ...], about: str) -> None:
        self.namespace, self.names, self.about = namespace, names, about
        self.name = about
        self.values = tuple(map(namespace.get, names))

    def same(self) -> bool:
        if all(map(is_, map(self.namespace.get, self.names), self.values)):
            return True
        return all(map(_equal, map(self.namespace.get, self.names), self.values))

    def changed_name(self) -> str:
        now = map(self.namespace.get, self.names)
        other = [
            name
            for name, a, b in zip(self.names, now, self.values, strict=True)
            if not _equal(a, b)
        ]
        return f"{self.about}{other[0] if other else self.names[0]}"


class _Items:
    """Items of a list, or some of them."""

    def __init__(
        self, held: Callable[[], Sequence[Any]], start: int, saved: tuple[Any, ...], name: str
    ) -> None:
        self.held, self.start, self.saved, self.name = held, start, saved, name

    def same(self) -> bool:
        held: Any = self.held()
        now = (
            held[self.start : self.start + LONG]
            if type(held) is list
            else tuple(islice(held, self.start, self.start + LONG))
        )
        if len(now) != len(self.saved):
            return False
        return all(map(is_, now, self.saved)) or all(map(_equal, now, self.saved))

    def changed_name(self) -> str:
        return self.name


class _Slots:
    """The attributes of an object that its class has given slots."""

    def __init__(self, value: Any, names: tuple[str, ...], owner: str) -> None:
        self.value, self.names, self.owner = value, names, owner
        self.name = owner
        self.saved = slot_values(value, names)

    def same(self) -> bool:
        return all(map(_equal, slot_values(self.value, self.names), self.saved))

    def changed_name(self) -> str:
        now = slot_values(self.value, self.names)
        other = [
            name for name, a, b in zip(self.names, now, self.saved, strict=True) if not _equal(a, b)
        ]
        return f"{self.owner}.{other[0] if other else self.names[0]}"


class _Token:
    """What a short look gives: a length, a version, the state of a generator of random numbers."""

    def __init__(self, look: Callable[[], Any], name: str) -> None:
        self.look, self.name = look, name
        self.saved = look()

    def same(self) -> bool:
        return bool(self.look() == self.saved)

    def changed_name(self) -> str:
        return self.name


class _Cell:
    """A variable of an enclosing function."""

    def __init__(self, cell: Any, name: str) -> None:
        self.cell, self.name = cell, name
        self.saved = _content(cell)

    def same(self) -> bool:
        return _equal(_content(self.cell), self.saved)

    def changed_name(self) -> str:
        return self.name


class _Bytes:
    """A small array."""

    def __init__(self, view: memoryview, name: str) -> None:
        self.view, self.name = view, name
        self.saved = bytes(view)

    def same(self) -> bool:
        return self.view == self.saved

    def changed_name(self) -> str:
        return self.name


class _Chunk:
    """A part of a large array, first looked at in its turn."""

    def __init__(self, view: memoryview, name: str) -> None:
        self.view, self.name = view, name
        self.saved: int | None = None

    def same(self) -> bool:
        now = zlib.crc32(self.view)
        if self.saved is None:
            self.saved = now
        return now == self.saved

    def changed_name(self) -> str:
        return self.name


# Looking at one object.


def _equal(one: Any, other: Any) -> bool:
    return one is other or (
        type(one) is type(other) and is_one_of(type(one), PLAIN) and bool(one == other)
    )


def _that_change(values: Collection[Any]) -> list[Any]:
    """Of a container's values, those that can change in place."""
    kinds = dict.fromkeys(map(type, values))
    if all(is_one_of(kind, PLAIN) for kind in kinds):
        return []
    if all(is_one_of(kind, (*PLAIN, tuple)) for kind in kinds):
        inside = chain.from_iterable(each for each in values if type(each) is tuple)
        if all(is_one_of(kind, PLAIN) for kind in dict.fromkeys(map(type, inside))):
            return []
    return [each for each in islice(values, FAR) if not is_one_of(type(each), PLAIN)]


def attributes(value: Any) -> dict[str, Any] | None:
    """The very dict in which an object has its attributes; None where it has none, or one of its
    own making."""
    held = in_class(type(value), "__dict__")
    if type(held) is not types.GetSetDescriptorType:
        return None
    found = held.__get__(value)
    return found if type(found) is dict else None


def _slots(kind: type) -> tuple[str, ...]:
    """The names of slots of classes written in Python."""
    bodies = (vars(type)["__dict__"].__get__(base) for base in mro(kind))
    return tuple(
        name
        for body in bodies
        if "__slots__" in body
        for name, held in body.items()
        if type(held) is types.MemberDescriptorType
    )


def slot_values(value: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    found = []
    for name in names:
        try:
            found.append(object.__getattribute__(value, name))
        except AttributeError:
            found.append(None)
    return tuple(found)


def _module_of(value: Any) -> str:
    """The name of the module of an object's class; "" where it has none."""
    found = in_class(type(value), "__module__")
    return found if type(found) is str else ""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty yet
        return None


def _hidden(value: Any) -> list[Any]:
    """What well-known objects written in C hold."""
    import functools
    import sys

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


def _version_of(value: Any) -> Callable[[], Any] | None:
    import torch

    return (
        (lambda: value._version)
        if type(value) is torch.Tensor and not value.is_inference()
        else None
    )


def bytes_of(value: Any) -> memoryview | None:
    """The memory of an array, or of a tensor of the CPU; None of anything else, and of what cannot
    be written."""
    import numpy as np
    import torch

    kind = type(value)
    if kind is bytearray:
        return memoryview(value)
    if kind is torch.Tensor:
        with unseen():
            if value.device.type != "cpu" or value.layout is not torch.strided:
                return None
            if value.is_contiguous() and not value.is_neg() and not value.is_conj():
                start = value.storage_offset() * value.element_size()
                length = value.numel() * value.element_size()
            else:  # all that it is a view of
                start, length = 0, value.untyped_storage().nbytes()
            held = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage())
            return memoryview(held[start : start + length].numpy())  # type: ignore[arg-type]
    if not is_one_of(kind, (np.ndarray, np.memmap)):
        return None
    if not value.flags.c_contiguous and type(value.base) is np.ndarray:
        value = value.base
    if not value.flags.writeable or value.dtype.hasobject or not value.flags.forc:
        return None
    return memoryview(value.reshape(-1, order="A").view(np.uint8))


def random_state_of(value: Any) -> Callable[[], Any] | None:
    """What tells the state of a generator of random numbers."""
    import random
    import sys

    import torch

    kind = type(value)
    if kind is torch.Generator:
        return lambda: bytes(value.get_state().numpy())
    if kind is random.Random:
        return value.getstate  # type: ignore[no-any-return]
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None and is_one_of(kind, (numpy.Generator, numpy.RandomState)):
        bits = value._bit_generator if kind is numpy.RandomState else value.bit_generator
        return lambda: _plain(bits.state)
    return None


def _plain(state: Mapping[str, Any]) -> Any:
    """A bit generator's state, to be compared by ==."""
    return [
        _plain(each) if isinstance(each, dict) else bytes(each) if hasattr(each, "nbytes") else each
        for each in state.values()
    ]


def environment() -> Mapping[Any, Any]:
    """The variables of the environment."""
    held: Mapping[Any, Any] = attributes(os.environ)["_data"]  # type: ignore[index]
    return held
