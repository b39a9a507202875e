"""Pieces of code as text: names that may stand in it, values, and the imports it needs."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Sequence
from typing import Any

_UTILS = "torch.utils.data"
_TORCHDATA = "torchdata.stateful_dataloader"
# Where the names that our code uses come from; any other is defined in it, or the user's.
_FROM = {
    **dict.fromkeys(
        (
            "BatchSampler",
            "DataLoader",
            "Dataset",
            "DistributedSampler",
            "IterableDataset",
            "RandomSampler",
            "Sampler",
            "SequentialSampler",
            "default_collate",
            "default_convert",
            "get_worker_info",
        ),
        _UTILS,
    ),
    "StatefulDataLoader": _TORCHDATA,
}


# What defines, or waits for something that is to be done first.
_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.If, ast.Try)


# Longer functions than this are read by nobody; parsing hostile text costs memory.
MAX_CHARACTERS = 20_000


def parsed(lines: Sequence[str]) -> ast.Module | None:
    """Recorded source; None where it is too long or no Python: it is data from someone else."""
    if sum(map(len, lines)) > MAX_CHARACTERS:
        return None
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parsed_function(lines: Sequence[str]) -> ast.FunctionDef | None:
    """The function that recorded source begins with, by the same measure."""
    tree = parsed(lines)
    first = next(iter(tree.body), None) if tree is not None else None
    return first if isinstance(first, ast.FunctionDef) else None


class Source(str):
    """A value of `loader_code` that is code, such as the name of a function, and not a text."""

    __slots__ = ()


def last_part(qualified: str) -> str:
    """'Rows' of 'train.Rows'."""
    return qualified.rpartition(".")[2]


def identifier(text: str | None, fallback: str) -> str:
    """The last part of a qualified name if code may use it as a name, else `fallback`. Names in a
    run are untrusted."""
    name = last_part(text or "")
    return (
        name if name.isidentifier() and name.isascii() and not keyword.iskeyword(name) else fallback
    )


def literal(value: Any) -> str:
    """A value as code."""
    if isinstance(value, Source):
        return str.__str__(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return repr(value)
    raise TypeError(f"{type(value).__name__} cannot be written as an argument: use Source")


def told_by_hand(code: str) -> str:
    """Code that changes nothing by running, as it only defines what is then to be used, says so in
    its first line."""
    try:
        nodes = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return code
    if (
        not code.strip()
        or "by hand" in code.lower()
        or not all(isinstance(node, _DEFINES) for node in nodes)
    ):
        return code
    return (
        "# By hand: running this changes nothing yet; what to use where is said in its "
        f"comments.\n{code}"
    )


def free_names(tree: ast.Module) -> set[str]:
    """Names that the code uses and nowhere binds: imports it lacks, and what is the user's."""
    used: set[str] = set()
    bound = set(dir(builtins)) | {"__name__", "__file__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return used - bound


def with_imports(code: str) -> str:
    """The same code, importing each name of torch's loaders that it uses, and no other."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return code
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines = code.splitlines(keepends=True)
    held: dict[str, ast.ImportFrom] = {}
    for node in tree.body:
        if (
            isinstance(node, ast.ImportFrom)
            and node.module in (_UTILS, _TORCHDATA)
            and node.end_lineno == node.lineno
        ):
            held.setdefault(node.module, node)
    missing = {name for name in free_names(tree) if name in _FROM}
    added = ""
    for module in (_UTILS, _TORCHDATA):
        names = {name for name in missing if _FROM[name] == module}
        old = held.get(module)
        if old is not None:
            kept = {a.name for a in old.names if a.asname or a.name in used}
            line = _import(module, names | kept) if names | kept else ""
            if {a.name for a in old.names} != names | kept and not any(a.asname for a in old.names):
                lines[old.lineno - 1] = line
        elif names:
            added += _import(module, names)
    return "".join(_inserted(lines, tree, added))


def _import(module: str, names: set[str]) -> str:
    return f"from {module} import {', '.join(sorted(names, key=str.lower))}\n"


def _inserted(lines: list[str], tree: ast.Module, added: str) -> list[str]:
    """The lines with the imports after the last of those before they are used, or as the first."""
    if not added:
        return lines
    last = 0
    used = [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in _FROM
    ]
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and node.lineno < min(used, default=0):
            last = node.end_lineno or node.lineno
    if not last:
        return [added, "\n", *lines]
    if not lines[last - 1].endswith("\n"):
        lines[last - 1] += "\n"
    return [*lines[:last], added, *lines[last:]]
