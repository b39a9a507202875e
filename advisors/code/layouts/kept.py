"""A container that is opened for each sample: opened once in each worker instead, and kept."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ....profiler.store.inspection import Part
from ...case.case import Case
from ..loader_code import dataset_class
from ..method import (
    Method,
    bound_by,
    calls_in,
    given_to,
    linked,
    names_of,
    own_function,
    parsed,
    read_by,
)

# How `__getitem__` opens a container: (module or its usual alias, function) → kind.
_OPENERS = {
    ("h5py", "File"): "hdf5",
    ("zipfile", "ZipFile"): "zip",
    ("", "ZipFile"): "zip",
    ("tarfile", "open"): "tar",
    ("tarfile", "TarFile"): "tar",
    ("lmdb", "open"): "lmdb",
    ("lmdb", "Environment"): "lmdb",
    ("sqlite3", "connect"): "sqlite",
    ("pq", "ParquetFile"): "parquet",
    ("parquet", "ParquetFile"): "parquet",
    ("", "open"): "file",
}


@dataclass(frozen=True)
class Opener:
    """How a data set opens its container for each sample, as its source shows."""

    module: str
    function: str
    kind: str
    names: frozenset[str] = frozenset()  # what `__getitem__` calls it

    @property
    def text(self) -> str:
        return f"{self.module}.{self.function}" if self.module else self.function

    def used_by(self, line: str) -> bool:
        """Whether this line opens it, or does something with it."""
        return f"{self.text}(" in line or bool(names_of(parsed(line)) & self.names)


def opener_of(part: Part | None, surely: bool = True) -> Opener | None:
    """What `__getitem__`, or a function of its own that it calls, opens for each sample: a path
    that does not depend on the index, under no `if` (unless not `surely`). None if there is
    nothing, or if the source is not known."""
    if part is None or len(Method(part.getitem).arguments) != 1:
        return None
    try:
        methods = linked((part.getitem, *part.helpers))
        own = {each.name: each for each in methods}
        return next(_opened(methods[0], own, surely, set()), None)
    except (ValueError, RecursionError, MemoryError):
        return None


def _opened(
    method: Method, own: Mapping[str, Method], surely: bool, seen: set[str]
) -> Iterator[Opener]:
    """What a call of this method opens, by itself first. `own` are the functions that it may
    call."""
    if method.function is None or method.function.name in seen:
        return
    seen.add(method.function.name)
    body = method.function.body
    calls = [call for each in body for call in (_evaluated if surely else calls_in)(each)]
    for call in calls:
        module, _, function = ast.unparse(call.func).rpartition(".")
        given = given_to(call)
        kind = _OPENERS.get((module, function))
        if kind is not None and given and not method.varies(*given):
            held = _names_of(method, call)
            yield Opener(module, function, kind, held)
    for call in calls:
        called = own.get(own_function(call), method)  # a method that is seen already opens nothing
        for found in _opened(called, own, surely, seen):
            yield replace(found, names=_names_of(method, call) or found.names)


def _names_of(method: Method, call: ast.Call) -> frozenset[str]:
    """The names that hold what this call gives."""
    for each in method.statements:
        if call in (node for read in read_by(each) for node in ast.walk(read)):
            return frozenset(bound_by(each))
    return frozenset()


def _evaluated(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that this makes at every access: of `try` those in what it tries, of `or` and `and`
    those in the first operand, of a conditional expression those in its test."""
    inside: Iterable[ast.AST] = ast.iter_child_nodes(node)
    match node:
        case ast.Call():
            yield node
        case ast.BoolOp(_, [first, *_]) | ast.IfExp(first):
            inside = [first]
        case ast.Try(inside):
            pass
        case ast.If() | ast.For() | ast.While() | ast.Lambda():
            return
    for each in inside:
        yield from _evaluated(each)


def kept_code(case: Case, opener: Opener | None) -> str:
    """What to write into the class, so that it keeps the container open."""
    return f"""\
# By hand: in {dataset_class(case)}, with self.handle = None in __init__ and in __getstate__
#     if self.handle is None:  # at first use, in the worker: never before the workers start
#         self.handle = {opener.text if opener is not None else "open"}(…)
"""
