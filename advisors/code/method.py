"""A method that gives samples, as its source was recorded: its statements, and what in it differs
from sample to sample."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

_LOOPS = (ast.For, ast.While)
_PASSES = 2  # a loop carries values back to its beginning


class Method:
    """`function` is None where the source cannot be read."""

    def __init__(self, source: Sequence[str]) -> None:
        self.lines = "\n".join(source).split("\n")
        nodes = ast.walk(parsed("\n".join(source)))
        self.function = next((each for each in nodes if isinstance(each, ast.FunctionDef)), None)
        self.statements: list[ast.stmt] = []
        self.varying: set[str] = set()
        self.loops: dict[ast.stmt, ast.stmt] = {}  # the outermost loop that a statement stands in
        if self.function is None or not self.function.args.args:
            return
        self.statements = _statements_in(self.function)
        over = [each for each in self.function.body if isinstance(each, _LOOPS)]
        if self.function.name == "__iter__":  # what its loops hold is done for each sample
            self.statements = [each for loop in over for each in _statements_in(loop)[1:]]
        for loop in self.statements:
            if isinstance(loop, _LOOPS):
                for each in _statements_in(loop):
                    self.loops.setdefault(each, loop)
        arguments = [*self.function.args.posonlyargs, *self.function.args.args]
        own = arguments[0].arg == "self" or self.function.name.startswith("__getitem")
        self.varying = {each.arg for each in arguments[own:]}
        if self.function.name == "__iter__":
            self.varying = {name for loop in over for name in bound_by(loop)}
        for _ in range(_PASSES):
            for each in self.statements:
                if self.varies(read_by(each)):
                    self.varying |= {*bound_by(each), *_grown_by(each)}

    def at(self, line: str) -> ast.stmt | None:
        """The statement that this line is of, where it is the only such line."""
        places = [n for n, each in enumerate(self.lines, 1) if each.strip() == line.strip()]
        if len(places) != 1 or not line.strip():
            return None
        found = [each for each in self.statements if each.lineno <= places[0] <= _last(each)]
        return found[-1] if found and not isinstance(found[-1], ast.FunctionDef) else None

    def text(self, statement: ast.stmt) -> str:
        """The first line of a statement."""
        return self.lines[statement.lineno - 1].strip()

    def varies(self, expressions: Iterable[ast.AST]) -> bool:
        """Whether a name in these differs from sample to sample."""
        return names_in(expressions, self.varying)

    def after(self, statement: ast.stmt) -> list[ast.stmt]:
        return self.statements[self.statements.index(statement) + 1 :]


def _statements_in(tree: ast.AST) -> list[ast.stmt]:
    found = [each for each in ast.walk(tree) if isinstance(each, ast.stmt)]
    return sorted(found, key=lambda each: each.lineno)


def parsed(source: str) -> ast.AST:
    """The source as a tree, of the head of a block too; an empty one if it cannot be read."""
    for text in (source.strip(), f"{source.strip()} pass"):
        with suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(text)
    return ast.Module([], [])


def read_by(statement: ast.stmt) -> list[ast.expr]:
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


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """The names that it gives a value, or into which it writes."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    targets += [each.optional_vars for each in getattr(statement, "items", ())]
    for target in targets:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name):
                yield node.id


def calls_in(tree: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Call)]


def called(call: ast.Call) -> str:
    """'collect' of `gc.collect()`."""
    return ast.unparse(call.func).rpartition(".")[2]


def names_in(expressions: Iterable[ast.AST], names: set[str]) -> bool:
    """Whether one of these names stands in them."""
    nodes = (node for each in expressions for node in ast.walk(each))
    return any(isinstance(node, ast.Name) and node.id in names for node in nodes)


def _grown_by(statement: ast.stmt) -> Iterator[str]:
    """What a method is called of, as `found.append(…)` is."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            yield name


def _last(statement: ast.stmt) -> int:
    """The last line of a statement; of a block, of its head."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
