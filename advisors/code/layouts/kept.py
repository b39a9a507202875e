"""A container that is opened for each sample: opened once in each worker instead, and kept."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import Source, parsed_function
from ..loader_code import dataset_class, loader_code
from ..template import code_from

# How `__getitem__` opens a container: (module, function) or ("", function) → kind. Aliases are
# those people use.
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
    """What `__getitem__` opens for each sample: a call whose path is no look-up of the index (that
    would be a file of the sample's own) and which stands under no `if`; not `surely`: under any.
    None where there is none, or where the source is not known."""
    method = parsed_function(part.getitem) if part is not None else None
    if method is None or len(method.args.args) != 2:
        return None
    try:
        local = {
            name.id
            for node in ast.walk(method)
            if isinstance(node, ast.Assign)
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
        imported = {
            (a.asname or a.name).partition(".")[0]
            for node in ast.walk(method)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for a in node.names
        }
        for node in _always(method.body) if surely else method.body:
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and not _uses(
                    call, local | {method.args.args[1].arg}
                ):
                    found = _known(call.func, imported)
                    if found is not None:
                        return found
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _always(body: list[ast.stmt]) -> list[ast.AST]:
    """Statements that run at every access, conditions left out; of `with` and `try`, what they
    hold."""
    found: list[ast.AST] = []
    for statement in body:
        if isinstance(statement, ast.With):
            found += [item.context_expr for item in statement.items]
            found += _always(statement.body)
        elif isinstance(statement, ast.Try):
            found += _always(statement.body)
        elif not isinstance(statement, ast.If | ast.For | ast.While):
            found.append(statement)
    return found


def _uses(call: ast.Call, names: set[str]) -> bool:
    """Whether what is opened depends on these names: on the index, or on what was made of it."""
    arguments = [*call.args, *(each.value for each in call.keywords)]
    return not arguments or any(
        isinstance(node, ast.Name) and node.id in names
        for argument in arguments
        for node in ast.walk(argument)
    )


def _known(function: ast.expr, imported: set[str]) -> Opener | None:
    if isinstance(function, ast.Name):
        module, name = "", function.id
    elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        module, name = function.value.id, function.attr
    else:
        return None
    kind = _OPENERS.get((module, name))
    return Opener(module, name, kind, (module or name) in imported) if kind is not None else None


def kept_code(case: Case, opener: Opener | None) -> str:
    """A data set that keeps the container open, its loader, and what to write into the class
    instead. Without a known opener, only the latter."""
    name = dataset_class(case)
    by_hand = [
        f"# In {name} itself, with self.handle = None in __init__ and in __getstate__:",
        "#     if self.handle is None:  # at first use, in the worker: never before the workers "
        "start",
        f"#         self.handle = {opener.text if opener is not None else 'open'}(…)",
    ]
    if opener is None or opener.local:
        return (
            "\n".join(["from torch.utils.data import DataLoader", "", *by_hand, loader_code(case)])
            + "\n"
        )
    names = "type(dataset).__getitem__.__globals__"
    owner = opener.module
    if owner:
        function = opener.function
        lines = [
            f'module = {names}["{owner}"]',
            f'stands_in = types.SimpleNamespace(**{{**vars(module), "{function}": '
            f"Kept(module.{function})}})",
        ]
    else:
        builtin = "open" if opener.function == "open" else "None"
        lines = [f'stands_in = Kept({names}.get("{opener.function}", {builtin}))']
    lines += [
        "",
        "",
        "class KeepsOpen(type(dataset)):",
        "    __getitem__ = with_names(type(dataset).__getitem__, "
        f"{owner or opener.function}=stands_in)",
        "",
        "",
        "kept = copy.copy(dataset)  # the data set at hand stays as it is",
        "kept.__class__ = KeepsOpen",
        loader_code(case, dataset=Source("kept")),
        "",
        *by_hand,
    ]
    then = "\n".join([*lines, ""])
    return code_from(
        "kept", "Kept", "Handle", "with_names", then=then, REWIND=opener.kind == "file"
    )
