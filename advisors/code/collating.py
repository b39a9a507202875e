"""What the source of a collate function says it does: make tensors of lists of arrays, or work for
each sample by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from ...profiler.store.sampled_fetches import SampleField
from ..case.code_text import parsed_function
from .method import Method, bound_by, called, calls_in, draws, names_of, parsed

# They go through lists value by value.
_OF_LISTS = ("tensor", "as_tensor", "FloatTensor", "Tensor", "LongTensor")
_ARRAYS = ("numpy.ndarray", "torch.Tensor")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
# Calls that put samples together, or cost next to nothing.
_PACKING = {
    *("tensor", "as_tensor", "from_numpy", "array", "asarray", "FloatTensor", "LongTensor"),
    *("Tensor", "stack", "cat", "concatenate", "vstack", "hstack", "pad", "pad_sequence"),
    *("copy_", "to", "clone"),
    *("zeros", "ones", "full", "new_zeros", "view", "reshape", "unsqueeze", "squeeze", "permute"),
    *("transpose", "contiguous", "long", "float", "int", "bool", "numpy", "tolist", "item", "size"),
    *("len", "append", "extend", "zip", "range", "enumerate", "max", "min", "sum", "list", "tuple"),
    *("dict", "get", "keys", "values", "items", "isinstance", "str", "copy"),
}


def of_arrays(source: Sequence[str], fields: Iterable[SampleField]) -> bool:
    """Whether this collate function makes a tensor of a list of arrays that are alike in all
    samples. Without fields the source alone says it."""
    function = parsed_function(source)
    match function:
        case ast.FunctionDef(args=ast.arguments(args=[ast.arg(samples)])):
            lists = dict(_lists(function, samples))
        case _:
            return False
    seen = {each.path: each.alike and each.type in _ARRAYS and each.shape for each in fields}
    for call in calls_in(function):
        if called(call) in _OF_LISTS and len(call.args) == 1:
            given = call.args[0]
            held = lists.get(given.id) if isinstance(given, ast.Name) else _made(given, samples)
            if held is not None and (not seen or seen.get(held)):
                return True
    return False


def tensor_of_list(line: str) -> bool:
    """Whether this line makes a tensor of something that it holds in a name, or of a list."""
    return any(
        called(call) in _OF_LISTS
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Name | ast.List | ast.ListComp)
        for call in calls_in(parsed(line))
    )


def done_per_sample(method: Method, line: str) -> bool:
    """Whether this line of a collate function does some work for each sample by itself, other than
    putting samples together, and draws nothing."""
    statement = method.at(line)
    if statement is None:
        return False
    loop, calls = method.loops.get(statement), list[tuple[ast.Call, set[str]]]()
    if isinstance(loop, ast.For) and method.varies(loop.iter):
        bound = bound_by(*(each for each in ast.walk(loop) if isinstance(each, ast.stmt)))
        calls += [(call, bound) for call in calls_in(statement)]
    for made in ast.walk(statement):
        if isinstance(made, _COMPREHENSIONS) and method.varies(
            *(each.iter for each in made.generators)
        ):
            bound = names_of(*(each.target for each in made.generators))
            calls += [(call, bound) for call in calls_in(made)]
    return any(
        called(call) not in _PACKING and names_of(call) & bound and not draws(call)
        for call, bound in calls
    )


def _lists(function: ast.FunctionDef, samples: str) -> Iterator[tuple[str, str | None]]:
    """The lists by name, each with the path of the field that it holds of every sample."""
    for each in function.body:
        match each:
            case ast.Assign([ast.Name(name)], value):
                yield name, _made(value, samples)
            case ast.Assign(
                [ast.Tuple(targets) as target],
                ast.Call(ast.Name("zip"), [ast.Starred(ast.Name(given))]),
            ) if given == samples:
                for item in targets:
                    if isinstance(item, ast.Name):
                        yield item.id, _field(item, target)
            case ast.For(target, ast.Name(given), body) if given == samples:
                for statement in body:
                    match statement:
                        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [item])):
                            yield name, _field(item, target)


def _made(value: ast.expr, samples: str) -> str | None:
    """The path of the field of each sample that a comprehension holds."""
    match value:
        case ast.ListComp(item, [ast.comprehension(target, ast.Name(given), [])]):
            return _field(item, target) if given == samples else None
    return None


def _field(item: ast.expr, target: ast.expr) -> str | None:
    """The path of this field of a sample that is called `target`."""
    match item:
        case ast.Call(ast.Attribute(value, "tolist"), [], []) | ast.Call(
            ast.Name("list"), [value], []
        ):
            item = value
    path = ""
    while isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant):
        path, item = f"[{item.slice.value!r}]{path}", item.value
    names = list(map(ast.unparse, target.elts if isinstance(target, ast.Tuple) else [target]))
    if not isinstance(item, ast.Name) or item.id not in names:
        return None
    return f"[{names.index(item.id)}]{path}" if isinstance(target, ast.Tuple) else path
