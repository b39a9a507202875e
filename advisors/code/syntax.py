"""Python source as a tree: what stands in loops, and parts replaced by others."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def names(tree: ast.AST) -> Counter[str]:
    """How often each name stands there."""
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def looped(tree: ast.AST) -> set[ast.AST]:
    """All that runs more than once; a `for` statement evaluates what it iterates over once."""
    return {
        node
        for loop in ast.walk(tree)
        if isinstance(loop, LOOPS)
        for part in ast.iter_child_nodes(loop)
        if not (isinstance(loop, ast.For) and part is loop.iter)
        for node in ast.walk(part)
    }


def without_annotations(function: ast.FunctionDef) -> ast.FunctionDef:
    """What they name may be unknown where the code is pasted."""
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return function


class Replaced(ast.NodeTransformer):
    """Each of these nodes gives way to another, or to nothing."""

    def __init__(self, others: Mapping[ast.AST, ast.AST | None]) -> None:
        self.others = others

    def visit(self, node: ast.AST) -> ast.AST | None:
        if node in self.others:
            return self.others[node]
        found: ast.AST | None = super().visit(node)
        return found
