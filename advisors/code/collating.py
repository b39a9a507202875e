"""A collate function that makes tensors of lists of arrays, changed to stack the arrays; only for
what its samples were seen to be."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...profiler.store.sampled_fetches import SampleField
from ..case.code_text import parsed_function
from .method import Method, bound_by, called, calls_in, draws, names_of, parsed
from .python_text import Piece, PythonText, edited
from .rewritten import bare, with_imports_of
from .syntax import names

# Of lists, value by value, and the type that they make of them.
_OF_LISTS = {
    **dict.fromkeys(("tensor", "as_tensor")),
    **dict.fromkeys(("FloatTensor", "Tensor"), "torch.float32"),
    "LongTensor": "torch.int64",
}
# What Python's numbers become; a list of arrays keeps their type.
_OF_NUMBERS = {
    **dict.fromkeys(("float32", "float64"), "torch.get_default_dtype()"),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8"), "torch.int64"),
    "bool": "torch.bool",
}
_TYPES = ("numpy.ndarray", "torch.Tensor")
_KEPT = ("dtype", "device")
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


@dataclass(frozen=True)
class _Field:
    """What a list holds of every sample: the field at `path`, read by `value`, of which `tolist`
    makes a list. `uses`: how often its name stands in the function, where it is only filled and
    given on."""

    path: str
    value: ast.expr
    tolist: ast.expr | None
    uses: int


def of_lists(source: Sequence[str], fields: Iterable[SampleField]) -> str | None:
    """`stack_samples`: this collate function with arrays that it makes lists of, and that are alike
    in all samples, copied once each. None where there is nothing of it, or where that is not
    certain; "" where its code uses names of its module, and without fields: the source alone then
    says it."""
    if parsed_function(source) is None:
        return None
    file, seen = PythonText("\n".join(source)), {each.path: each for each in fields}
    found: list[list[Piece]] = []
    match file.tree.body[0]:
        case (
            ast.FunctionDef(args=ast.arguments(args=[ast.arg(samples)]), decorator_list=[]) as made
        ):
            found = [each for each in stacked(file, made, samples, seen) if each is not None]
    pieces = [piece for each in found for piece in each]
    if not pieces or not seen:
        return "" if found else None
    code = with_imports_of(bare(edited(file.text, pieces), "stack_samples"))
    return f"{code}\n" if code is not None else ""


def stacked(
    file: PythonText, function: ast.FunctionDef, samples: str, seen: Mapping[str, SampleField]
) -> Iterator[list[Piece] | None]:
    """For each field of which this function makes a tensor through a list, the pieces that stack it
    in place of that. None where another value may come of it; where no field was seen, all are
    taken for arrays."""
    lists, count = dict(_lists(function, samples)), names(function)
    for call in calls_in(function):
        if called(call) not in _OF_LISTS or len(call.args) != 1:
            continue
        given, held = call.args[0], _comprehended(call.args[0], samples)
        if isinstance(given, ast.Name):
            held = lists.get(given.id)
        if held is None or (isinstance(given, ast.Name) and count[given.id] > held.uses):
            continue
        if isinstance(held.tolist, ast.Name):  # what `list` holds may be of another type
            yield []
            continue
        looks = seen.get(held.path)
        if seen and not _alike(call, looks, held.tolist):
            yield None
            continue
        dtype = _OF_LISTS[called(call)]
        if looks is not None and held.tolist is not None:
            dtype = dtype or _OF_NUMBERS[looks.dtype or ""]
        if dtype is None or any(each.arg == "dtype" for each in call.keywords):
            more = ""
        else:
            more = f", dtype={dtype}"
        library = "np" if looks is None or looks.kind == "ndarray" else "torch"
        begin, end = file.span(given)
        pieces = [
            file.replaced(call.func, "torch.as_tensor"),
            (begin, begin, f"{library}.stack("),
            (end, end, f"){more}"),
        ]
        if held.tolist is not None:
            pieces.append(file.replaced(held.tolist, file.of(held.value)))
        yield pieces


def _alike(call: ast.Call, looks: SampleField | None, tolist: ast.AST | None) -> bool:
    """Whether stacking makes the same tensor of this field as the call makes of a list."""
    if looks is None or not looks.alike or looks.type not in _TYPES:
        return False
    if not looks.shape or 0 in looks.shape:  # an empty list becomes float32
        return False
    if looks.dtype not in _OF_NUMBERS or any(each.arg not in _KEPT for each in call.keywords):
        return False
    # torch makes no tensor of a list of tensors.
    return tolist is not None or looks.kind == "ndarray"


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


def _lists(function: ast.FunctionDef, samples: str) -> Iterator[tuple[str, _Field | None]]:
    """By name."""
    for each in function.body:
        match each:
            case ast.Assign([ast.Name(name)], value):
                yield name, _comprehended(value, samples)
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
                            yield name, _field(item, target, uses=3)


def _comprehended(value: ast.expr, samples: str) -> _Field | None:
    match value:
        case ast.ListComp(item, [ast.comprehension(target, ast.Name(given), [])]):
            return _field(item, target) if given == samples else None
    return None


def _field(item: ast.expr, target: ast.expr, uses: int = 2) -> _Field | None:
    """Of a sample that is called `target`."""
    tolist: ast.expr | None = None
    match item:
        case ast.Call(ast.Attribute(value, "tolist"), [], []):
            tolist, item = item, value
        case ast.Call(ast.Name("list") as func, [value], []):
            tolist, item = func, value
    path, held = "", item
    while isinstance(held, ast.Subscript) and isinstance(held.slice, ast.Constant):
        path, held = f"[{held.slice.value!r}]{path}", held.value
    match held, target:
        case ast.Name(name), ast.Name(sample) if name == sample:
            return _Field(path, item, tolist, uses)
        case ast.Name(name), ast.Tuple(targets):
            for place, each in enumerate(targets):
                if isinstance(each, ast.Name) and each.id == name:
                    return _Field(f"[{place}]{path}", item, tolist, uses)
    return None
