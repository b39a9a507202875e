"""What the user's source files say that cannot be seen while they run, or only too late."""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ..profiler.guard.users_code import of_user

MOST_FILES, MOST_BYTES = 500, 2 << 20
# Waits for whichever child ends: `os.wait()`, `os.waitpid(-1, ...)`, `os.waitid(os.P_ALL, ...)`.
_ANY_CHILD = re.compile(r"\bos\.wait3?\(|\bwaitpid\(\s*-1\b|\bP_ALL\b|from os import .*\bwait\b")
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
# Methods that change a list, dict, set or array in place, and functions that do so to their first
# argument.
_METHODS = (
    *(
        "append",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
    ),
    *("add", "discard", "fill", "put", "itemset", "partition", "resize", "shuffle"),
)
_FUNCTIONS = ("copyto", "put", "place", "putmask", "fill_diagonal", "shuffle")


def files() -> Iterable[Path]:
    """The source files of the user's modules."""
    modules = [each for each in tuple(sys.modules.values()) if type(each) is types.ModuleType]
    paths = dict.fromkeys(vars(each).get("__file__") for each in modules)
    users = (path for path in paths if type(path) is str and path.endswith(".py") and of_user(path))
    return map(Path, list(users)[:MOST_FILES])


def waits_for_any_child() -> str | None:
    """Where the program waits for whichever of its children ends ("train.py:31"); None where it
    does not."""
    for path in files():
        text = _text(path)
        found = _ANY_CHILD.search(text)
        if found is not None:
            return f"{path.name}:{text.count(chr(10), 0, found.start()) + 1}"
    return None


def written_in_place(name: str) -> str | None:
    """Where items of something under this name, an attribute or a global, are written
    ("train.py:31"); None where they are not. What a constructor writes does not count."""
    for path in files():
        line = _scanned(path).written.get(name)
        if line is not None:
            return f"{path.name}:{line}"
    return None


def assigned(name: str, to: str = "") -> str | None:
    """Where an attribute of this name is assigned ("train.py:31"), of something among whose names
    is one with `to` in it; None where none is. What a constructor assigns does not count."""
    told = re.compile(rf"\.{re.escape(name)}\b[^=\n]*=(?!=)|\bsetattr\(")
    for path in files():
        if told.search(_text(path)) is None:  # much is not worth parsing
            continue
        for line, owners in _scanned(path).assigned.get(name, ()):
            if any(to in owner.lower() for owner in owners):
                return f"{path.name}:{line}"
    return None


class _Scanned:
    """What one file writes: by name, the first line that writes items; by attribute, lines and what
    it is of."""

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        self.assigned: dict[str, list[tuple[int, set[str]]]] = {}


_known: dict[Path, tuple[int, _Scanned]] = {}


def _scanned(path: Path) -> _Scanned:
    with suppress(OSError):
        changed_ns = path.stat().st_mtime_ns
        if path not in _known or _known[path][0] != changed_ns:
            found = _Scanned()
            with suppress(SyntaxError, ValueError, RecursionError):
                _scan(ast.parse(_text(path)), found)
            _known[path] = changed_ns, found
        return _known[path][1]
    return _Scanned()


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_bytes()[:MOST_BYTES].decode(errors="replace")
    return ""


def _scan(scope: ast.AST, found: _Scanned) -> None:
    """Of a module or function: what it writes to, whatever it is called there."""
    aliases: dict[str, set[str]] = {}
    for _ in range(2):  # a name may be bound below where it is used
        for node in _nodes_of(scope):
            for target, value in _bindings(node):
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        aliases.setdefault(each.id, set()).update(_names(value, aliases))
    for node in _nodes_of(scope):
        for written in _written(node):
            for name in _names(written, aliases):
                found.written.setdefault(name, getattr(node, "lineno", 0))
        for name, owner in _assigned(node):
            found.assigned.setdefault(name, []).append(
                (getattr(node, "lineno", 0), _names(owner, aliases))
            )
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name not in _CONSTRUCTORS
        ):
            _scan(node, found)


def _nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """What lies in this scope, and functions in it, but not what lies in those."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(ast.iter_child_nodes(node))


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Assign):
        yield from ((each, node.value) for each in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter


def _written(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose value this changes in place."""
    if isinstance(node, ast.Assign | ast.Delete):
        yield from (
            each
            for target in node.targets
            for each in ast.walk(target)
            if isinstance(each, ast.Subscript)
        )
    elif isinstance(node, ast.AugAssign):
        yield node.target
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if isinstance(node.func, ast.Attribute) and name in _METHODS:
            yield node.func.value
        if name in _FUNCTIONS:
            yield from node.args[:1]
        yield from (each.value for each in node.keywords if each.arg == "out")


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The attributes that this assigns, and what they are assigned to."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AugAssign)
        else []
    )
    for each in (each for target in targets for each in ast.walk(target)):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr, each.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
        owner, name = (*node.args, None, None)[:2]
        if owner is not None and isinstance(name, ast.Constant):
            yield str(name.value), owner


def _names(expression: ast.AST, aliases: dict[str, set[str]]) -> set[str]:
    """The names of attributes in an expression, and those that its variables stand for; of a
    variable its own too."""
    found: set[str] = set()
    for each in ast.walk(expression):
        if isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.Name):
            found |= {each.id, *aliases.get(each.id, ())}
    return found
