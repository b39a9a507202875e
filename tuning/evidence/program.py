"""What the user's source files show that cannot be seen at run time, or only too late."""

import ast
import re
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...profiler.guard.users_code import of_user

Aliases = dict[str, set[str]]
Calls = dict[str, list[ast.Call]]
MOST_FILES, MOST_BYTES = 500, 2 << 20
# Waits for whichever child ends: `os.wait()`, `os.waitpid(-1, ...)`, `os.waitid(os.P_ALL, ...)`.
_ANY_CHILD = re.compile(r"\bos\.wait3?\(|\bwaitpid\(\s*-1\b|\bP_ALL\b|from os import .*\bwait\b")
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
# Methods that change a list, dict, set or array in place, and functions that do so to their first
# argument.
_METHODS = (
    *("add", "append", "clear", "discard", "extend", "fill", "insert", "itemset", "partition"),
    *("pop", "popitem", "put", "remove", "resize", "reverse", "setdefault", "shuffle", "sort"),
    "update",
)
# Those that give nothing: if what they give is used, they are a string's or a picture's, and make
# something new.
_NOTHING_GIVEN = ("partition", "resize")
_FUNCTIONS = ("copyto", "put", "place", "putmask", "fill_diagonal", "shuffle")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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
        if (found := _ANY_CHILD.search(text)) is not None:
            return f"{path.name}:{text.count(chr(10), 0, found.start()) + 1}"
    return None


def written_in_place(name: str) -> str | None:
    """Where items of something under this name, an attribute or a global, are written
    ("train.py:31"); None where they are not. What a constructor writes does not count."""
    for path, writes in _naming(name):
        if (line := writes.items.get(name)) is not None:
            return f"{path.name}:{line}"
    return None


def assigned(name: str) -> bool:
    """Whether an attribute of this name is assigned, of something that is called a sampler. What a
    constructor assigns does not count."""
    owners = (writes.owners.get(name, ()) for _, writes in _naming(name))
    return any("sampler" in owner.lower() for found in owners for owner in found)


class _Writes(NamedTuple):
    """What one file writes: by name, the first line that writes items; by attribute, the names of
    what it is an attribute of."""

    items: dict[str, int]
    owners: dict[str, set[str]]


def _naming(name: str) -> Iterator[tuple[Path, _Writes]]:
    """The files that have this name somewhere, because parsing takes long."""
    for path in files():
        text = _text(path)
        if name in text:
            yield path, _writes(text)


@lru_cache(maxsize=MOST_FILES)
def _writes(text: str) -> _Writes:
    found = _Writes({}, {})
    with suppress(SyntaxError, ValueError, RecursionError):
        tree = ast.parse(text)
        _scan(tree, found, {}, _calls(tree))
    return found


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_bytes()[:MOST_BYTES].decode(errors="replace")
    return ""


def _calls(tree: ast.AST) -> Calls:
    found: Calls = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.setdefault(_called(node), []).append(node)
    return found


def _called(call: ast.Call) -> str:
    name: str = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name


def _scan(scope: ast.AST, found: _Writes, outer: Aliases, calls: Calls) -> None:
    """Of a module or function: what it writes to, whatever it is called there. `outer` are the
    aliases of the scope around it, `calls` the calls in the file, by the name of the function."""
    aliases = {name: set(stands_for) for name, stands_for in outer.items()}
    if isinstance(scope, _DEFINITIONS):
        for name, given in _arguments(scope, calls):
            aliases.setdefault(name, set()).update(_names(given, outer))
    nodes = list(_nodes_of(scope))
    dropped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in (*nodes, *nodes):  # a name may be bound below where it is used
        value = getattr(node, "iter", getattr(node, "value", None))
        if value is None or isinstance(node, ast.AugAssign):
            continue
        for each in _in_targets(node, ast.Name):
            aliases.setdefault(each.id, set()).update(_names(value, aliases))
    for node in nodes:
        line = getattr(node, "lineno", 0)
        for written in _written(node, used=id(node) not in dropped):
            for name in _names(written, aliases):
                found.items.setdefault(name, line)
        for name, owner in _assigned(node):
            found.owners.setdefault(name, set()).update(_names(owner, aliases))
        if isinstance(node, _DEFINITIONS) and node.name not in _CONSTRUCTORS:
            _scan(node, found, aliases, calls)


def _arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef, calls: Calls
) -> Iterator[tuple[str, ast.AST]]:
    """What calls of this function give for each of its arguments."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    for call in calls.get(function.name, ()):
        bound = isinstance(call.func, ast.Attribute) and names[:1] == ["self"]
        yield from zip(names[bound:], call.args, strict=False)
        yield from ((each.arg, each.value) for each in call.keywords if each.arg is not None)


def _nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """What lies in this scope, and functions in it, but not what lies in those."""
    waiting = list(ast.iter_child_nodes(scope))
    for node in waiting:
        yield node
        if not isinstance(node, _DEFINITIONS):
            waiting.extend(ast.iter_child_nodes(node))


def _in_targets(node: ast.AST, kind: type) -> Iterator[Any]:
    """The nodes of this kind in what a statement or a loop assigns to, or deletes."""
    one = getattr(node, "target", None)
    for target in getattr(node, "targets", () if one is None else (one,)):
        yield from (each for each in ast.walk(target) if isinstance(each, kind))


def _written(node: ast.AST, used: bool) -> Iterator[ast.AST]:
    """The expressions whose value this changes in place. `used`: what it gives is."""
    yield from _in_targets(node, ast.Subscript)
    if isinstance(node, ast.AugAssign):
        yield node.target
    elif isinstance(node, ast.Call):
        name = _called(node)
        changes = name in _METHODS and not (used and name in _NOTHING_GIVEN)
        if isinstance(node.func, ast.Attribute) and changes:
            yield node.func.value
        if name in _FUNCTIONS:
            yield from node.args[:1]
        yield from (each.value for each in node.keywords if each.arg == "out")


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The attributes that this assigns, and what they are assigned to."""
    for each in _in_targets(node, ast.Attribute):
        if isinstance(each.ctx, ast.Store):
            yield each.attr, each.value
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
        owner, name = (*node.args, None, None)[:2]
        if owner is not None and isinstance(name, ast.Constant):
            yield str(name.value), owner


def _names(expression: ast.AST, aliases: Aliases) -> set[str]:
    """The names of attributes in an expression, and those that its variables stand for; of a
    variable its own too."""
    found: set[str] = set()
    for each in ast.walk(expression):
        if isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.Name):
            found |= {each.id, *aliases.get(each.id, ())}
    return found
