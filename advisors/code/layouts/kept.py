"""A container that is opened for each sample: opened once in each worker instead, and kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import Source, parsed_function
from ..loader_code import dataset_class, loader_code
from ..syntax import names
from ..template import code_from
from .place import copied

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
    local: bool = False  # imported inside the method: there it cannot be replaced from outside

    @property
    def text(self) -> str:
        return f"{self.module}.{self.function}" if self.module else self.function


def opener_of(part: Part | None, surely: bool = True) -> Opener | None:
    """What `__getitem__` opens for each sample: a path that does not depend on the index, under no
    `if` (unless not `surely`). None if there is nothing, or if the source is not known."""
    method = parsed_function(part.getitem) if part is not None else None
    if method is None or len(method.args.args) != 2:
        return None
    of_sample, imported = {method.args.args[1].arg}, set()
    try:
        for node in ast.walk(method):
            match node:
                case ast.Assign(targets):
                    of_sample.update(name for target in targets for name in names(target))
                case ast.Import(aliases) | ast.ImportFrom(_, aliases):
                    imported |= {(a.asname or a.name).partition(".")[0] for a in aliases}
        for statement in _always(method.body) if surely else method.body:
            for node in ast.walk(statement):
                match node:
                    case ast.Call(ast.Name(function), given, options):
                        module = ""
                    case ast.Call(ast.Attribute(ast.Name(module), function), given, options):
                        pass
                    case _:
                        continue
                given = [*given, *(each.value for each in options)]
                path = {name for each in given for name in names(each)}
                kind = _OPENERS.get((module, function))
                if kind is not None and given and path.isdisjoint(of_sample):
                    return Opener(module, function, kind, (module or function) in imported)
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _always(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What runs at every access: of `with` and `try` what they hold, of conditions nothing."""
    for statement in body:
        match statement:
            case ast.With(items, inner):
                yield from (item.context_expr for item in items)
                yield from _always(inner)
            case ast.Try(inner):
                yield from _always(inner)
            case ast.If() | ast.For() | ast.While():
                pass
            case _:
                yield statement


def kept_code(case: Case, opener: Opener | None) -> str:
    """A data set that keeps the container open, its loader, and what to write into the class
    instead. Without a known opener, only the latter."""
    by_hand = (
        f"# In {dataset_class(case)} itself, with self.handle = None in __init__ and in "
        "__getstate__:\n"
        "#     if self.handle is None:  # at first use, in the worker: never before the workers "
        "start\n"
        f"#         self.handle = {opener.text if opener is not None else 'open'}(…)\n"
    )
    if opener is None or opener.local:
        return f"from torch.utils.data import DataLoader\n\n{by_hand}{loader_code(case)}\n"
    scope, function = "type(dataset).__getitem__.__globals__", opener.function
    if opener.module:
        stands_in = (
            f'module = {scope}["{opener.module}"]\n'
            f'stands_in = types.SimpleNamespace(**{{**vars(module), "{function}": '
            f"Kept(module.{function})}})"
        )
    else:
        builtin = "open" if function == "open" else "None"
        stands_in = f'stands_in = Kept({scope}.get("{function}", {builtin}))'
    then = f"""\
{stands_in}


class KeepsOpen(type(dataset)):
    __getitem__ = with_names(type(dataset).__getitem__, {opener.module or function}=stands_in)


{copied("kept")[0]}
kept.__class__ = KeepsOpen
{loader_code(case, dataset=Source("kept"))}

{by_hand}"""
    return code_from("kept", then=then, REWIND=opener.kind == "file")
