"""What the source of a method says of one of its lines: whether its result is the same for every
sample, whether it is needed at all, and whether less of it would do."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

# Calls that training does without: what they do is done by the interpreter or torch anyway.
NOT_NEEDED = ("gc.collect", "torch.cuda.empty_cache", "torch.cuda.synchronize")
# How objects of a multiprocessing.Manager ask its process.
_PROXY = "BaseProxy._callmethod"
_SMALLER = ("resize", "crop", "thumbnail", "interpolate", "downscale", "decimate", "subsample")
# A line that draws differs from sample to sample, whatever it depends on; so does the time.
_DRAWS = ("rand", "random", "choice", "shuffle", "sample", "uniform", "normal", "time", "next")


# Methods of open files, queues, cameras and the like, which may give something else each time.
_MOVES_ON = (
    *("read", "readline", "readlines", "get", "pop", "popleft", "recv"),
    *("integers", "permutation", "draw", "step", "grab", "retrieve"),
)
# Calls that search what they are of for the value that they are given.
_SEARCHES = ("index", "query", "where", "nonzero", "argwhere", "flatnonzero")


class Shape(NamedTuple):
    """What is wrong with a line, as advice: a title, a continuation of "`line` takes 90 % of
    fetch", and what to do. `saves` is the part of the line's time that surely goes. A line that is
    `costly` takes long wherever it stands."""

    title: str
    why: str
    do: str
    saves: float
    caveat: str | None = None
    costly: bool = False


def shape_of(source: Sequence[str], line: str, called: str = "") -> Shape | None:
    """The shape of this line of a method, and of the function that takes most of it. None where
    nothing is known to be wrong with it."""
    if _PROXY in called:
        return Shape(
            "Read this in the process that needs it",
            ", in another process, which is asked for each sample",
            "make a plain dict or array of it, before training or in each worker.",
            0.9,
        )
    call = not_needed(line)
    if call is not None:
        return Shape(
            "Leave this out",
            ", and training does without it",
            "delete this call.",
            1.0,
            costly=True,
        )
    if same_for_every_sample(source, line):
        return Shape(
            "Do once what is the same for every sample",
            ", and depends on nothing but `self`: every sample gets the same",
            "make it once, in __init__ or at first use, and keep it in self.",
            0.9,
            "What it reads must not change while training goes on.",
        )
    if searched(source, line):
        return Shape(
            "Look this up instead of searching for it",
            ", and searches everything for one sample",
            "make a dict, or a sorted index, once in __init__.",
            0.8,
            costly=True,
        )
    smaller = made_smaller(source, line)
    if smaller is not None:
        return Shape(
            "Work on what is used alone",
            f", and only a part of what it makes is used: `{smaller[:80]}`",
            "take the part, or make the result small, before this.",
            0.5,
            "Values may differ a little where the order of the two matters.",
        )
    return None


def not_needed(line: str) -> str | None:
    """The call on this line that training does without; None where there is none."""
    calls = (ast.unparse(each.func) for each in _calls(_parsed(line)))
    return next((each for each in calls if each in NOT_NEEDED), None)


def same_for_every_sample(source: Sequence[str], line: str) -> bool:
    """Whether this line of a `__getitem__` depends on nothing but `self` and constants: what it
    makes could be made once. False where that cannot be told."""
    found = _found(source, line)
    if found is None:
        return False
    made = _read(found[0])
    calls = any(_calls(part) for part in made)
    return calls and not _varies(made, found[1]) and not any(map(_draws, made))


def _found(source: Sequence[str], line: str) -> tuple[ast.stmt, set[str]] | None:
    """The statement of this line in a method, and the names in it whose values differ from sample
    to sample."""
    function = _function(source)
    if function is None or not function.args.args or not line.strip():
        return None
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    varying = set(arguments[1:])
    statements = _statements(function)
    for _ in range(2):  # a loop carries values back to its beginning
        for each in statements:
            if _varies(_read(each), varying):
                varying |= set(_bound(each))
    lines = "\n".join(source).split("\n")
    found = [each for each in statements if _line(lines, each) == line.strip()]
    return (found[0], varying) if len(found) == 1 else None


def searched(source: Sequence[str], line: str) -> bool:
    """Whether this line compares all of something with what differs from sample to sample, to find
    where they are equal."""
    found = _found(source, line)
    if found is None:
        return False
    statement, varying = found
    for node in (node for part in _read(statement) for node in ast.walk(part)):
        if isinstance(node, ast.Subscript | ast.comprehension):
            tests = [node.slice] if isinstance(node, ast.Subscript) else node.ifs
            if any(_compares(test, varying) for test in tests):
                return True
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            inside = [*node.args, *(each.value for each in node.keywords)]
            equal = any(_compares(each, varying) for each in inside)
            if name in _SEARCHES[:2] and (equal or _varies(inside, varying)):
                return True
            if name in _SEARCHES and equal:
                return True
    return False


def _compares(test: ast.expr, varying: set[str]) -> bool:
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Eq)
        and _varies([node], varying)
        for node in ast.walk(test)
    )


def made_smaller(source: Sequence[str], line: str) -> str | None:
    """The later line that makes what this line makes smaller: it takes a part of it, resizes or
    crops it. None where there is none: this line then works on no more than is used."""
    function = _function(source)
    statements = _statements(function) if function is not None else []
    lines = "\n".join(source).split("\n")
    at = next((n for n, each in enumerate(statements) if _line(lines, each) == line.strip()), None)
    if at is None or not isinstance(statements[at], ast.Assign):
        return None
    made = {*_bound(statements[at])}
    for each in statements[at + 1 :]:
        for node in (node for part in _read(each) for node in ast.walk(part)):
            if _is_smaller(node, made):
                return _line(lines, each)
        if made & {*_bound(each)}:  # something else from here on
            return None
    return None


def _is_smaller(node: ast.AST, made: set[str]) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in made
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2].lower()
        return any(word in name for word in _SMALLER) and _varies([node], made)
    return False


def _function(source: Sequence[str]) -> ast.FunctionDef | None:
    nodes = ast.walk(_parsed("\n".join(source)))
    return next((each for each in nodes if isinstance(each, ast.FunctionDef)), None)


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    found = [each for each in ast.walk(function) if isinstance(each, ast.stmt)]
    return sorted(found, key=lambda each: each.lineno)


def _line(lines: Sequence[str], statement: ast.stmt) -> str:
    return lines[statement.lineno - 1].strip()


def _parsed(source: str) -> ast.AST:
    with suppress(SyntaxError, ValueError, RecursionError):
        return ast.parse(source.strip())
    with suppress(SyntaxError, ValueError, RecursionError):  # the head of a block
        return ast.parse(f"{source.strip()} pass")
    return ast.Module([], [])


def _read(statement: ast.stmt) -> list[ast.expr]:
    """The expressions that this statement itself evaluates, not those of its body."""
    fields = (
        value for name, value in ast.iter_fields(statement) if name not in ("targets", "target")
    )
    found: list[ast.expr] = []
    for value in fields:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                found.append(each)
            elif isinstance(each, ast.withitem):
                found.append(each.context_expr)
    return found


def _bound(statement: ast.stmt) -> Iterable[str]:
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    targets += [each.optional_vars for each in getattr(statement, "items", ())]
    for target in targets:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name):
                yield node.id


def _varies(expressions: Iterable[ast.expr], varying: set[str]) -> bool:
    names = (node for each in expressions for node in ast.walk(each) if isinstance(node, ast.Name))
    return any(name.id in varying for name in names)


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Call)]


def _draws(expression: ast.expr) -> bool:
    """Whether it may give something else each time, whatever it depends on."""
    for call in _calls(expression):
        called = ast.unparse(call.func)
        name = called.rpartition(".")[2]
        if any(word in name for word in _DRAWS):
            return True
        if called.startswith("self.") and name in _MOVES_ON:
            return True
    return False
