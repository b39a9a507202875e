"""Chains of element-wise operations on large tensors: each passes through memory and makes a tensor
of its own, where one fused operator, or what torch.compile makes of them, passes once in all. Read
from source, which is never run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ....profiler.base.metadata import clean
from ...case.code_text import parsed_function

# Fewer are no chain: two passes instead of one are seldom worth a change.
LEAST_OPERATIONS = 4
# What is left of a chain, at best and at worst (torch 2.13, one thread, CPU time, 20,000 to
# 8,000,000 numbers): GELU by hand against torch's 0.16 to 0.42, chains compiled 0.18 to 0.65.
_GELU, _COMPILED = (0.15, 0.5), (0.15, 0.75)
_OF_ROOT_TWO = re.compile(
    r"\berf\(.{0,40}(?:sqrt\(\s*2|1\.414|0\.707|SQRT_?2)", re.DOTALL | re.IGNORECASE
)
_FUNCTIONS = frozenset(
    {
        "tanh",
        "erf",
        "exp",
        "sigmoid",
        "sqrt",
        "pow",
        "abs",
        "clamp",
        "clip",
        "log",
        "log1p",
        "sin",
        "cos",
        "where",
        "relu",
        "square",
        "maximum",
        "minimum",
        "sub",
        "add",
        "mul",
        "div",
        "neg",
        "rsqrt",
        "softplus",
    }
)
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Chain:
    """`lines` are the source lines it stands in, stripped; `operator` is torch's own for it, None
    without one."""

    lines: frozenset[str]
    operations: int
    operator: str | None

    @property
    def left(self) -> tuple[float, float]:
        return _COMPILED if self.operator is None else _GELU

    def code(self, owner: str) -> str:
        """What to do, by hand: only a person sees where the tensor is needed."""
        told = "".join(f"#     {clean(line, 110)}\n" for line in sorted(self.lines))
        head = (
            f"# By hand: in {clean(owner, 80)}, in place of the {self.operations} operations "
            f"at\n{told}"
        )
        if self.operator is not None:
            return f"{head}# torch's own, fused:\n#     {self.operator}\n{_LATER}"
        return (
            f"{head}# a function of its own, compiled into one pass at its first use (some "
            "seconds, in each worker):\n"
            f"#     fused = torch.compile(function)\n{_LATER}"
        )


_LATER = (
    "# better still, where it is the same for each batch: once, in the training step, on its "
    "device\n"
)


def operation_chain(source: tuple[str, ...]) -> Chain | None:
    """The chain of a function with this source; None where it has none, or it cannot be read."""
    function = parsed_function(source)
    if function is None:
        return None
    places: list[ast.AST] = []
    for statement in function.body:
        # A loop over samples may hold one; a loop over numbers does not: neither is told apart from
        # the source.
        if isinstance(statement, _LOOPS):
            continue
        found = [node for node in ast.walk(statement) if _is_operation(node)]
        looped = {
            id(inner)
            for node in ast.walk(statement)
            if isinstance(node, _LOOPS)
            for inner in ast.walk(node)
        }
        places += [node for node in found if id(node) not in looped]
    called = {_called(node) for node in places}
    if len(places) < LEAST_OPERATIONS or not called & _FUNCTIONS:
        return None
    lines = frozenset(source[getattr(node, "lineno", 1) - 1].strip() for node in places)
    return Chain(lines, len(places), _operator("\n".join(source), called))


def _operator(text: str, called: set[str]) -> str | None:
    if "tanh" in called and "0.044715" in text:
        return 'torch.nn.functional.gelu(x, approximate="tanh")'
    if "erf" in called and _OF_ROOT_TWO.search(text):
        return "torch.nn.functional.gelu(x)"
    return None


def _is_operation(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        numbers = all(
            isinstance(each, ast.Constant | ast.BinOp) and not _names(each)
            for each in (node.left, node.right)
        )
        return not numbers and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow)
    return bool(_called(node)) and not _of_math(node)


def _names(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Name) for each in ast.walk(node))


def _called(node: ast.AST) -> str:
    """The element-wise function that is called, of torch, of NumPy or of a tensor; "" for anything
    else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _of_math(node):
        name = node.func.attr.rstrip("_")
        return name if name in _FUNCTIONS else ""
    return ""


def _of_math(node: ast.AST) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "math"
    )
