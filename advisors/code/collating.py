"""A collate function that makes tensors of lists of arrays, changed to stack the arrays; only for
what its samples were seen to be."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...profiler.store.sampled_fetches import SampleField
from ..case.code_text import free_names, parsed_function
from .method import Method, bound_by, called, calls_in, draws, names_of, parsed
from .python_text import Piece, PythonText, edited
from .rewritten import bare
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
_IMPORTS = {"np": "import numpy as np", "torch": "import torch"}


@dataclass
class Collating:
    """A collate function, and the fields of which it makes tensors through lists (`paths`)."""

    file: PythonText
    paths: tuple[str, ...]
    pieces: list[Piece] = field(repr=False)

    def code(self) -> str | None:
        """`stack_samples`, which copies each of these fields once; None where it uses names of its
        module, or where the samples were not described."""
        if not self.pieces:
            return None
        function = bare(edited(self.file.text, self.pieces), "stack_samples")
        used = free_names(ast.Module([function], []))
        if not used <= _IMPORTS.keys():
            return None
        imports = "\n".join(line for name, line in _IMPORTS.items() if name in used)
        return f"{imports}\n\n\n{ast.unparse(function)}\n"


@dataclass(frozen=True)
class _Listed:
    """A list with one field of every sample: what it makes of a sample, called `target`. `uses`:
    how often its name stands in the function, where it is only filled and given on."""

    item: ast.expr
    target: ast.expr
    uses: int = 0


def of_lists(source: Sequence[str], fields: Iterable[SampleField]) -> Collating | None:
    """What this collate function makes of lists of arrays that are alike in all samples; None where
    there is nothing of it, or where that is not certain. Without fields, the source alone says
    it, and there is no code."""
    function = parsed_function(source)
    if function is None or len(function.args.args) != 1 or function.decorator_list:
        return None
    file, seen = PythonText("\n".join(source)), {each.path: each for each in fields}
    (function,) = file.tree.body[:1]  # type: ignore[assignment]
    assert isinstance(function, ast.FunctionDef)
    paths, pieces = [], []
    for path, found in stacked(file, function, function.args.args[0].arg, seen):
        if found is not None or not seen:
            paths.append(path)
            pieces += found if found is not None and seen else []
    return Collating(file, tuple(paths), pieces) if paths else None


def stacked(
    file: PythonText, function: ast.FunctionDef, samples: str, seen: Mapping[str, SampleField]
) -> Iterator[tuple[str, list[Piece] | None]]:
    """Each field of which this function makes a tensor through a list, and the pieces that stack it
    in place of that. None where another value may come of it; where no field was seen, all are
    taken for arrays."""
    lists, count = dict(_lists(function, samples)), names(function)
    for call in calls_in(function):
        if called(call) not in _OF_LISTS or len(call.args) != 1:
            continue
        listed, given = _comprehended(call.args[0], samples), call.args[0]
        if isinstance(given, ast.Name):
            listed = lists.get(given.id)
            if listed is None or count[given.id] > listed.uses:
                continue
        path, made, tolist = _item(listed) if listed is not None else (None, None, None)
        if path is None:
            continue
        if isinstance(tolist, ast.Name):  # what `list` holds may be of another type
            yield path, []
            continue
        looks = seen.get(path)
        if seen and not _alike(call, looks, tolist):
            yield path, None
            continue
        dtype = _OF_LISTS[called(call)]
        if looks is not None and tolist is not None:
            dtype = dtype or _OF_NUMBERS[looks.dtype or ""]
        given_dtype = any(each.arg == "dtype" for each in call.keywords)
        array = looks is None or looks.kind == "ndarray"
        begin, end = file.span(given)
        more = f", dtype={dtype}" if dtype is not None and not given_dtype else ""
        pieces = [
            file.replaced(call.func, "torch.as_tensor"),
            (begin, begin, f"{'np' if array else 'torch'}.stack("),
            (end, end, f"){more}"),
        ]
        if tolist is not None and made is not None:
            pieces.append(file.replaced(tolist, file.of(made)))
        yield path, pieces


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


def _lists(function: ast.FunctionDef, samples: str) -> Iterator[tuple[str, _Listed]]:
    """By name."""
    for each in function.body:
        match each:
            case ast.Assign([ast.Name(name)], value):
                listed = _comprehended(value, samples)
                if listed is not None:
                    yield name, listed
            case ast.Assign(
                [ast.Tuple(targets) as target],
                ast.Call(ast.Name("zip"), [ast.Starred(ast.Name(given))]),
            ) if given == samples:
                for item in targets:
                    if isinstance(item, ast.Name):
                        yield item.id, _Listed(item, target, 2)
            case ast.For(target, ast.Name(given), body) if given == samples:
                for statement in body:
                    match statement:
                        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [item])):
                            yield name, _Listed(item, target, 3)


def _comprehended(value: ast.expr, samples: str) -> _Listed | None:
    match value:
        case ast.ListComp(item, [ast.comprehension(target, ast.Name(given), [])]):
            return _Listed(item, target, 2) if given == samples else None
    return None


def _item(listed: _Listed) -> tuple[str | None, ast.expr | None, ast.AST | None]:
    """(which field of a sample this is, the field, the call that makes a list of it)."""
    item, path = listed.item, ""
    tolist: ast.expr | None = None
    match item:
        case ast.Call(ast.Attribute(value, "tolist"), [], []):
            tolist, item = item, value
        case ast.Call(ast.Name("list") as func, [value], []):
            tolist, item = func, value
    made = item
    while isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant):
        path, item = f"[{item.slice.value!r}]{path}", item.value
    match item, listed.target:
        case ast.Name(name), ast.Name(target) if name == target:
            return path, made, tolist
        case ast.Name(name), ast.Tuple(targets):
            for place, each in enumerate(targets):
                if isinstance(each, ast.Name) and each.id == name:
                    return f"[{place}]{path}", made, tolist
    return None, None, None
