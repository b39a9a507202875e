"""Whether objects have changed: what a data set, collate function or sampler holds, and what their
code names (class attributes, globals, closures, the environment).

A few hundred containers near the roots are compared each time. What is far (long lists, large
arrays) is compared in turns. None of the objects' code runs.
"""

from __future__ import annotations

import types
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import _lru_cache_wrapper, partial
from inspect import CO_VARARGS, CO_VARKEYWORDS
from itertools import chain
from operator import is_
from typing import Any

from ...profiler.base.clock import now_ns
from ...profiler.guard.error_origin import forgiving
from ...profiler.guard.static_access import in_class, inherits, instance_vars, is_one_of, short_name
from .named_code import NamedCode
from .obstacles import obstacle
from .parts import (
    PLAIN,
    Part,
    Values,
    attributes,
    cell_content,
    changeable,
    environment,
    hidden,
    memory_of,
    slot_values,
    slots_of,
    state_of,
)

NEAR, FAR = 256, 10_000  # containers compared each time, and in turns
LONG = 256  # items of a container compared at a time
NEAR_BYTES, ALL_NEAR_BYTES, CHUNK_BYTES = 1 << 16, 1 << 18, 1 << 16
_DICTS = (dict, OrderedDict, defaultdict, Counter)
_SETS = (set, frozenset)
_CONTAINERS = (*_DICTS, *_SETS, list, tuple, deque)
_NO_PARTS = (types.ModuleType, types.BuiltinFunctionType)
# What objects of these modules hold is the interpreter's business: how they hinder other processes
# is known.
_SYSTEM = ("logging", "threading", "multiprocessing", "concurrent", "weakref", "io", "_io")

_END = object()  # of the values of all parts

Found = tuple[Any, str, bool]  # an object, what a sentence calls it, whether it is near


class State:
    """Some named objects as they were when this was made. Making it never raises."""

    def __init__(self, roots: Mapping[str, Any], without: Collection[Any] = ()) -> None:
        """`without`: objects to leave out, with all that they hold."""
        self._roots, self._without = roots, without
        self.obstacles: dict[str, None] = {}  # why no other process can use the objects
        self.fork_obstacles: dict[str, None] = {}  # why no forked process can
        self.writes: str | None = None  # code that seems to write files
        self.large: dict[str, None] = {}  # names of what is compared in turns
        self._buffers: list[Callable[[], memoryview]] = []  # of arrays and tensors in memory
        self.near: list[Part] = []  # compared each time
        self._alike = Alike(())
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
        self._alike = Alike(self.near)

    def again(self) -> State:
        """The same objects as they are now."""
        return State(self._roots, self._without)

    def changed(self, within_ns: int = 0, full: bool = False) -> str | None:
        """The name of something that has changed; None if nothing has. What is far is compared for
        so long, or all of it."""
        if not self._alike.same():
            for part in self.near:
                if (name := part.changed()) is not None:
                    return name
            self._alike = Alike(self.near)  # other objects, of the same values
        until = now_ns() + within_ns if within_ns else 0
        for _ in range(len(self._far) if full or within_ns else 0):
            if not full and now_ns() >= until:
                break
            part, self._next = self._far[self._next], (self._next + 1) % len(self._far)
            if (name := part.changed()) is not None:
                return name
        return None

    def aliases(self, address: int, nbytes: int) -> bool:
        """Whether the objects hold this memory."""
        import numpy as np

        for read in self._buffers:
            held = np.frombuffer(read(), np.uint8)
            at = held.__array_interface__["data"][0]
            if at < address + nbytes and address < at + held.nbytes:
                return True
        return False

    def _walk(self, roots: Mapping[str, Any]) -> None:
        """Breadth first, so that what is near the objects is compared each time."""
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
        """The objects that the code of the objects names, each once."""
        code = self._code
        for namespace, names, about in code.names():
            yield from self._keyed(about, names.__iter__, partial(map, namespace.get, names))
        while code.cells:
            name, cell = code.cells.pop()
            about = f"the variable {name}"
            held = self._add(about, partial(cell_content, cell)).saved
            yield from ((each, about, True) for each in held or ())
        if code.reads_environment and not self._environment:
            self._environment = True
            variables = environment()
            self._add("the environment", variables.values, keys=variables.keys)
        if code.prints is not None:
            self.obstacles[f"{code.prints} prints"] = None
        if code.writes is not None:
            self.writes = f"{code.writes} may write to a file"

    def _inside(self, value: Any, name: str, near: bool) -> Iterator[Found]:
        """The objects inside an object that may change in place. Notes how it itself may change."""
        kind = type(value)
        if is_one_of(kind, _CONTAINERS):
            return self._container(value, name, near)
        if _has_run(value):
            return iter(())
        self._code.met(value)
        if is_one_of(kind, _NO_PARTS) or inherits(kind, type):
            return iter(())
        return self._object(value, name, near)

    def _container(self, value: Any, name: str, near: bool) -> Iterator[Found]:
        kind, long = type(value), len(value) > LONG
        keys = value.keys if is_one_of(kind, _DICTS) else None
        values = value.__iter__ if keys is None else value.values

        def items() -> Any:
            return value if kind is list else tuple(values())

        if long:
            self._add(name, lambda: (len(value),), near, plain=True)
            for start in range(0, len(value), LONG):
                self._add(name, partial(_some_of, items, start), near=False)
        elif not is_one_of(kind, (tuple, frozenset)):
            self._add(name, values, near, keys)
        if is_one_of(kind, _SETS):
            return iter(())
        return ((each, name, near and not long) for each in changeable(items()))

    def _object(self, value: Any, name: str, near: bool) -> Iterator[Found]:
        found = obstacle(value, name)
        if found is not None:
            forked, why = found
            (self.fork_obstacles if forked else self.obstacles)[why] = None
        module = in_class(type(value), "__module__")
        if type(module) is str and module.partition(".")[0] in _SYSTEM:
            return
        self._content(value, name, near)
        held, slots, owner = attributes(value), slots_of(type(value)), f"{short_name(value)}."
        if held is not None:
            yield from self._keyed(owner, held.keys, held.values, near)
        if slots:
            named = partial(slot_values, value, slots)
            yield from self._keyed(owner, named, lambda: named().values(), near)
        yield from ((each, name, near) for each in hidden(value))

    def _keyed(
        self, owner: str, keys: Values, values: Values, near: bool = True
    ) -> Iterator[Found]:
        """Names and their values."""
        part = self._add(owner.strip(" ."), values, near, keys, owner)
        found = zip(part.saved_keys, part.saved or (), strict=False)
        return ((value, f"{owner}{key}", near) for key, value in found)

    def _content(self, value: Any, name: str, near: bool) -> None:
        """Of arrays, tensors and generators of random numbers."""
        if (read := state_of(value)) is not None:
            self._add(name, read, near, plain=True)
        memory = memory_of(value)
        if memory is None:
            return
        self._buffers.append(memory)
        size = memory().nbytes
        if near and size <= NEAR_BYTES and self._near_bytes + size <= ALL_NEAR_BYTES:
            self._near_bytes += size
            self._add(name, lambda: (bytes(memory()),), plain=True)
            return
        for start in range(0, size, CHUNK_BYTES):
            self._add(name, partial(_checksum, memory, start), near=False, later=True)

    def _add(
        self,
        name: str,
        values: Values,
        near: bool = True,
        keys: Values | None = None,
        of: str | None = None,
        plain: bool = False,
        later: bool = False,
    ) -> Part:
        part = Part(name, values, keys, of, plain, later)
        if near and len(self.near) < NEAR:
            self.near.append(part)
        elif len(self._far) < FAR:
            self._far.append(part)
            self.large[name] = None
        return part


class Alike:
    """Parts that are compared all at once: values by identity, plain ones by equality. Ten of them
    take 2 µs so, and 10 µs one by one."""

    def __init__(self, parts: Collection[Part]) -> None:
        plain = [each for each in parts if each.plain]
        self._plain, self._was = [each.values for each in plain], [each.saved for each in plain]
        others = [each for each in parts if not each.plain]
        self._values = [each.values for each in others]
        self._saved = [*chain.from_iterable(each.saved or () for each in others), _END]

    def same(self) -> bool:
        """Whether nothing has changed. If not, the new values may still equal the earlier ones."""
        try:
            now = chain.from_iterable([read() for read in self._values])
            return (
                all(map(is_, chain(now, (_END,)), self._saved))
                and [read() for read in self._plain] == self._was
            )
        except RuntimeError:  # another thread changes one
            return False


def _some_of(items: Callable[[], Any], start: int) -> Any:
    return items()[start : start + LONG]


def _checksum(memory: Callable[[], memoryview], start: int) -> tuple[int]:
    return (zlib.crc32(memory()[start : start + CHUNK_BYTES]),)


def _has_run(value: Any) -> bool:
    """Whether this is a function that runs once, and has: `functools.cache` of one without
    arguments. Forked workers have its result too."""
    if type(value) is not _lru_cache_wrapper or not value.cache_info().currsize:
        return False
    code = getattr(instance_vars(value).get("__wrapped__"), "__code__", None)
    return type(code) is types.CodeType and not (
        code.co_argcount + code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    )
