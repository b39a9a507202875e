"""Pieces of code as text: names that may stand in it, values, and the imports it needs."""

import ast
import builtins
import keyword
from collections.abc import Sequence
from typing import Any

# Module → the names in it that our code uses; any other name is defined in the code, or the user's.
_MODULES = {
    "torch.utils.data": {
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
    },
    "torchdata.stateful_dataloader": {"StatefulDataLoader"},
}

# What defines, or waits for something that is to be done first.
_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.If, ast.Try)


# Longer functions than this are read by nobody; parsing hostile text costs memory.
MAX_CHARACTERS = 20_000


def parsed(lines: Sequence[str]) -> ast.Module | None:
    """Recorded source; None if it is too long or no Python: it is data from someone else."""
    return None if sum(map(len, lines)) > MAX_CHARACTERS else _tree("\n".join(lines))


def _tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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
    usable = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    return name if usable else fallback


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
    tree = _tree(code)
    if tree is None or not code.strip() or "by hand" in code.lower():
        return code
    if not all(isinstance(node, _DEFINES) for node in tree.body):
        return code
    return (
        f"# By hand: running this changes nothing yet; its comments say what to use where.\n{code}"
    )


def is_by_hand(code: str) -> bool:
    """Whether this says what to do, and leaves the code to a person."""
    return code.startswith("# By hand")


def defines(code: str) -> bool:
    """Whether running this code puts functions or classes of its own to use."""
    if is_by_hand(code) or told_by_hand(code) != code:
        return False
    kinds = ast.FunctionDef | ast.ClassDef
    return any(isinstance(node, kinds) for node in getattr(_tree(code), "body", ()))


def free_names(tree: ast.Module) -> set[str]:
    """Names that the code uses and nowhere binds: imports it lacks, and what is the user's."""
    used: set[str] = set()
    bound = {*dir(builtins), "__name__", "__file__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()):
                used.add(name)
            case ast.alias(name, renamed):
                bound.add((renamed or name).partition(".")[0])
            case (
                ast.Name(name)
                | ast.FunctionDef(name)
                | ast.AsyncFunctionDef(name)
                | ast.ClassDef(name)
                | ast.arg(name)
                | ast.ExceptHandler(_, str(name))
            ):
                bound.add(name)
    return used - bound


def with_imports(code: str) -> str:
    """The same code, importing each name of torch's loaders that it uses, and no other."""
    tree = _tree(code)
    if tree is None:
        return code
    used = {
        node.id: node.lineno for node in reversed([*ast.walk(tree)]) if isinstance(node, ast.Name)
    }
    missing, lines, added = free_names(tree), code.splitlines(keepends=True), ""
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for module, names in _MODULES.items():
        wanted = missing & names
        held = next((node for node in imports if getattr(node, "module", "") == module), None)
        if held is None:
            added += _import(module, wanted)
        elif held.end_lineno == held.lineno and not any(alias.asname for alias in held.names):
            wanted |= {alias.name for alias in held.names if alias.name in used}
            lines[held.lineno - 1] = _import(module, wanted)
    if not added:
        return "".join(lines)
    # After the last of the imports before they are used, or first of all.
    first = min(used[name] for names in _MODULES.values() for name in missing & names)
    last = max((node.end_lineno or 0 for node in imports if node.lineno < first), default=0)
    return "".join([*lines[:last], added, *([] if last else ["\n"]), *lines[last:]])


def _import(module: str, names: set[str]) -> str:
    return f"from {module} import {', '.join(sorted(names, key=str.lower))}\n" if names else ""
