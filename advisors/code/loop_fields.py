"""Which fields of a batch a training loop reads, by the source of its `for` statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from .syntax import names

_FIELD = re.compile(r"\[[^\]]*\]")
# What wraps a loader and hands its batches on as they are.
_WRAPPERS = frozenset({"enumerate", "tqdm", "iter"})
_ALL_NAMES = frozenset({"locals", "vars", "eval", "exec"})


def fields_of(paths: Iterable[str]) -> tuple[str, ...]:
    """The fields ("['graph']", "[2]") of a batch with leaves at these paths."""
    found = (_FIELD.match(path) for path in paths)
    return tuple(dict.fromkeys(each[0] for each in found if each is not None))


def unread(loop: Sequence[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Those of these fields that the loop does not read; () where it may read all, and of a loop
    that reads none."""
    read = _read_by("\n".join(loop))
    return tuple(each for each in fields_of(paths) if each not in read) if read else ()


def _read_by(source: str) -> frozenset[str] | None:
    """None if that is not known."""
    try:
        loop = ast.parse(source).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(loop, ast.For) or names(loop).keys() & _ALL_NAMES:
        return None
    target = loop.target
    calls = [ast.unparse(each.func) for each in ast.walk(loop.iter) if isinstance(each, ast.Call)]
    if not _WRAPPERS.issuperset(call.rpartition(".")[2] for call in calls):
        return None
    if "enumerate" in calls:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        target = target.elts[1]
    body = [node for statement in loop.body for node in ast.walk(statement)]
    return _read_of(target, body)


def _read_of(target: ast.expr, body: list[ast.AST]) -> frozenset[str] | None:
    """What of a batch that is bound to this target is read here."""
    changed = (node.target for node in body if isinstance(node, ast.AugAssign))
    loads = (node for node in body if not isinstance(getattr(node, "ctx", None), ast.Store))
    loaded = {node.id for node in (*loads, *changed) if isinstance(node, ast.Name)}
    match target:
        case ast.Tuple(parts) | ast.List(parts):
            if any(isinstance(part, ast.Starred) for part in parts):
                return None
            used = (not names(part) or names(part).keys() & loaded for part in parts)
            return frozenset(f"[{at}]" for at, read in enumerate(used) if read)
        case ast.Name(name):
            return _read_by_key(name, body)
    return None


def _read_by_key(name: str, body: list[ast.AST]) -> frozenset[str] | None:
    """Of a batch with a name; None if it is used in any other way than by key or taken apart."""
    read: set[str] = set()
    known: set[ast.AST] = set()
    for node in body:
        match node:
            case ast.Subscript(ast.Name(id) as batch, ast.Constant(key), ast.Load()) if id == name:
                read.add(f"[{key!r}]")
                known.add(batch)
            case ast.Assign([ast.Tuple() as target], ast.Name(id) as batch) if id == name:
                taken = _read_of(target, body)
                if taken is None:
                    return None
                read |= taken
                known.add(batch)
    uses = {node for node in body if isinstance(node, ast.Name) and node.id == name}
    return frozenset(read) if uses == known else None
