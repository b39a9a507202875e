"""Chains of element-wise operations on large tensors, found in source, which is never run.

Each operation reads and writes memory once. A fused operator, or what torch.compile makes of the
chain, does so once for all.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ....profiler.base.metadata import clean
from ...case.code_text import parsed_function
from ..syntax import looped, names

# Fewer are no chain: to save one pass is seldom worth a change.
LEAST_OPERATIONS = 4
# What is left of a chain, at best and at worst (torch 2.13, one thread, CPU time, 20,000 to
# 8,000,000 numbers): GELU by hand against torch's 0.16 to 0.42, chains compiled 0.18 to 0.65.
_GELU, _COMPILED = (0.15, 0.5), (0.15, 0.75)
_OF_ROOT_TWO = re.compile(
    r"\berf\(.{0,40}(?:sqrt\(\s*2|1\.414|0\.707|SQRT_?2)", re.DOTALL | re.IGNORECASE
)
_FUNCTION = re.compile(
    "tanh|erf|exp|sigmoid|r?sqrt|pow|abs|clamp|clip|log|log1p|sin|cos|where|relu|square|maximum"
    "|minimum|sub|add|mul|div|neg|softplus"
)
_LATER = (
    "# even better, if it is the same for each batch: once, in the training step, on its device\n"
)


@dataclass(frozen=True)
class Chain:
    """`lines` are its source lines, stripped; `operator` is torch's own for it, None without
    one."""

    lines: frozenset[str]
    operations: int
    operator: str | None

    @property
    def left(self) -> tuple[float, float]:
        return _COMPILED if self.operator is None else _GELU

    def code(self, owner: str) -> str:
        """What to do, by hand: only a person sees where the tensor is needed."""
        lines = "".join(f"#     {clean(line, 110)}\n" for line in sorted(self.lines))
        does, use = "torch's own, fused", self.operator
        if use is None:
            does = (
                "a function of its own, compiled into one pass at its first use (some seconds, in "
                "each worker)"
            )
            use = "fused = torch.compile(function)"
        return (
            f"# By hand: in {clean(owner, 80)}, in place of the {self.operations} operations at\n"
            f"{lines}# {does}:\n#     {use}\n{_LATER}"
        )


def operation_chain(source: tuple[str, ...]) -> Chain | None:
    """The chain of a function with this source; None if it has none, or cannot be read."""
    function = parsed_function(source)
    if function is None:
        return None
    # Source does not show whether a loop goes over samples or over numbers.
    outside = {*ast.walk(function)} - looped(function)
    places = [node for node in outside if isinstance(node, ast.expr) and _operation(node)]
    called = {_operation(node) for node in places} - {"+"}
    if len(places) < LEAST_OPERATIONS or not called:
        return None
    lines = frozenset(source[node.lineno - 1].strip() for node in places)
    return Chain(lines, len(places), _operator("\n".join(source), called))


def _operator(text: str, called: set[str]) -> str | None:
    if "tanh" in called and "0.044715" in text:
        return 'torch.nn.functional.gelu(x, approximate="tanh")'
    if "erf" in called and _OF_ROOT_TWO.search(text):
        return "torch.nn.functional.gelu(x)"
    return None


def _operation(node: ast.expr) -> str:
    """The element-wise function that is called, of torch, of NumPy or of a tensor; "+" for
    arithmetic; "" for anything else."""
    match node:
        case ast.BinOp(_, ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
            return "+" if names(node) else ""
        case ast.Call(ast.Attribute(owner, name)) if ast.unparse(owner) != "math":
            return name.rstrip("_") if _FUNCTION.fullmatch(name.rstrip("_")) else ""
    return ""
