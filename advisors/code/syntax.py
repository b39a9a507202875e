"""Python source as a tree."""

from __future__ import annotations

import ast
from collections import Counter


def names(tree: ast.AST) -> Counter[str]:
    """How often each name stands there."""
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def without_annotations(function: ast.FunctionDef) -> ast.FunctionDef:
    """What they name may be unknown where the code is pasted."""
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return function
