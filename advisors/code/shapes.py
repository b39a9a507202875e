"""What the source of a method says of one of its lines: whether its result is the same for every
sample, and whether it is needed at all."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress

# Calls that training does without: what they do is done by the interpreter or torch anyway.
NOT_NEEDED = ("gc.collect", "torch.cuda.empty_cache", "torch.cuda.synchronize")
# A line that draws differs from sample to sample, whatever it depends on; so does the time.
_DRAWS = ("rand", "random", "choice", "shuffle", "sample", "uniform", "normal", "time", "next")


def not_needed(line: str) -> str | None:
    """The call on this line that training does without; None where there is none."""
    calls = (ast.unparse(each.func) for each in _calls(_parsed(line)))
    return next((each for each in calls if each in NOT_NEEDED), None)


def same_for_every_sample(source: Sequence[str], line: str) -> bool:
    """Whether this line of a `__getitem__` depends on nothing but `self` and constants: what it
    makes could be made once. False where that cannot be told."""
    function = next(
        (
            each
            for each in ast.walk(_parsed("\n".join(source)))
            if isinstance(each, ast.FunctionDef)
        ),
        None,
    )
    if function is None or not function.args.args:
        return False
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    varying = set(arguments[1:])
    statements = [each for each in ast.walk(function) if isinstance(each, ast.stmt)]
    for _ in range(2):  # a loop carries values back to its beginning
        for each in statements:
            if _varies(_read(each), varying):
                varying |= set(_bound(each))
    wanted = line.strip()
    lines = "\n".join(source).split("\n")
    found = [each for each in statements if lines[each.lineno - 1].strip() == wanted]
    if not found or not wanted:
        return False
    made = [part for each in found for part in _read(each)]
    reads = any(isinstance(node, ast.Call) for part in made for node in ast.walk(part))
    return reads and not _varies(made, varying) and not any(map(_draws, made))


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
    names = (ast.unparse(each.func).rpartition(".")[2] for each in _calls(expression))
    return any(word in name for name in names for word in _DRAWS)
