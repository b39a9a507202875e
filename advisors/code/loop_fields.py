"""Which fields of a batch a training loop reads, by the source of its `for` statement."""

import ast
import re
from collections.abc import Iterable, Sequence

from ..case.code_text import parsed
from .method import called, calls_in, names_of

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
    match parsed(loop):
        case ast.Module([ast.For(target, over, body) as whole, *_]):
            batch = _batch_of(target, over)
            read = _read_of(batch, [node for each in body for node in ast.walk(each)])
            if read and not names_of(whole) & _ALL_NAMES:
                return tuple(each for each in fields_of(paths) if each not in read)
    return ()


def _batch_of(target: ast.expr, over: ast.expr) -> ast.expr | None:
    """The target that stands for a batch; None if that is not known."""
    calls = {called(each) for each in calls_in(over)}
    if not calls <= _WRAPPERS:
        return None
    match target:
        case ast.Tuple([_, batch]) if "enumerate" in calls:
            return batch
    return None if "enumerate" in calls else target


def _read_of(target: ast.expr | None, body: list[ast.AST]) -> set[str]:
    """The fields that are read here of a batch that is bound to this target; none if it may be
    all."""
    match target:
        case ast.Tuple(parts) | ast.List(parts):
            if any(isinstance(part, ast.Starred) for part in parts):
                return set()
            changed = (node.target for node in body if isinstance(node, ast.AugAssign))
            loads = (node for node in body if not isinstance(getattr(node, "ctx", None), ast.Store))
            loaded = {node.id for node in (*loads, *changed) if isinstance(node, ast.Name)}
            bound = map(names_of, parts)
            return {f"[{at}]" for at, names in enumerate(bound) if not names or names & loaded}
        case ast.Name(name):
            return _read_by_key(name, body)
    return set()


def _read_by_key(name: str, body: list[ast.AST]) -> set[str]:
    """Of a batch with a name; none if it is used in any other way than by key or taken apart."""
    read: set[str] = set()
    uses = [node for node in body if isinstance(node, ast.Name) and node.id == name]
    for node in body:
        match node:
            case ast.Subscript(ast.Name(id) as batch, ast.Constant(key), ast.Load()) if id == name:
                read.add(f"[{key!r}]")
                uses.remove(batch)
            case ast.Assign([ast.Tuple() as target], ast.Name(id) as batch) if id == name:
                taken = _read_of(target, body)
                read |= taken
                if taken:
                    uses.remove(batch)
    return set() if uses else read
