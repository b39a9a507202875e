"""A collate function written anew where it makes tensors of lists of arrays; only for what its
samples were seen to be."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...profiler.store.sampled_fetches import SampleField
from ..case.code_text import free_names, parsed_function
from .method import called, calls_in, parsed
from .syntax import Replaced, expression, names

# Of lists, value by value, and the type that they make of them.
_OF_LISTS = {"tensor": None, "as_tensor": None, "FloatTensor": "torch.float32",
             "Tensor": "torch.float32", "LongTensor": "torch.int64"}  # fmt: skip
# What Python's numbers become; a list of arrays keeps their type.
_OF_NUMBERS = {"float": "torch.get_default_dtype()", "int": "torch.int64", "bool": "torch.bool"}
_KINDS = {
    **dict.fromkeys(("float32", "float64"), "float"),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8"), "int"),
    "bool": "bool",
}
_TYPES = ("numpy.ndarray", "torch.Tensor")
_KEPT = ("dtype", "device")
_IMPORTS = {"np": "import numpy as np", "torch": "import torch"}


@dataclass
class _Listed:
    """A list with one field of every sample. `made` is the expression of an item, `tolist` the call
    in it that makes a list of the field."""

    path: str
    made: ast.expr
    tolist: ast.Call | None


@dataclass
class Collating:
    """A collate function, and the fields of which it makes tensors through lists (`paths`)."""

    function: ast.FunctionDef
    paths: tuple[str, ...]
    replaced: dict[ast.AST, ast.AST | None] = field(repr=False)

    def code(self) -> str | None:
        """`stack_samples`, which copies each of these fields once; None where it uses names of its
        module, or where the samples were not described."""
        if not self.replaced:
            return None
        function = self.function
        Replaced(self.replaced).generic_visit(function)
        function.name, function.returns = "stack_samples", None
        for argument in function.args.args:
            argument.annotation = None
        ast.fix_missing_locations(function)
        used = free_names(ast.Module([function], []))
        if not used <= _IMPORTS.keys():
            return None
        imports = "\n".join(line for name, line in _IMPORTS.items() if name in used)
        return f"{imports}\n\n\n{ast.unparse(function)}\n"


def of_lists(source: Sequence[str], fields: Iterable[SampleField]) -> Collating | None:
    """What this collate function makes of lists of arrays that are alike in all samples; None where
    there is nothing of it, or where that is not certain. Without fields, the source alone says
    it, and there is no code."""
    function = parsed_function(source)
    if function is None or len(function.args.args) != 1 or function.decorator_list:
        return None
    seen = {each.path: each for each in fields}
    samples = function.args.args[0].arg
    lists = _lists(function, samples)
    replaced: dict[ast.AST, ast.AST | None] = {}
    paths = []
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        if called(call) not in _OF_LISTS or len(call.args) != 1:
            continue
        given = call.args[0]
        listed = (
            lists.get(given.id) if isinstance(given, ast.Name) else _comprehended(given, samples)
        )
        if listed is None or (
            isinstance(given, ast.Name) and names(function)[given.id] > _uses(listed)
        ):
            continue
        by_list = listed.tolist is not None and isinstance(listed.tolist.func, ast.Name)
        if not seen or by_list:  # what `list` holds may be of another type
            paths.append(listed.path)
            continue
        made = _stacked(call, listed, seen.get(listed.path))
        if made is not None:
            paths.append(listed.path)
            replaced[call] = made
            if listed.tolist is not None and isinstance(listed.tolist.func, ast.Attribute):
                replaced[listed.tolist] = listed.tolist.func.value
    return Collating(function, tuple(paths), replaced) if paths else None


def tensor_of_list(line: str) -> bool:
    """Whether this line makes a tensor of something that it holds in a name, or of a list."""
    return any(
        called(call) in _OF_LISTS
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Name | ast.List | ast.ListComp)
        for call in calls_in(parsed(line))
    )


def _uses(listed: _Listed) -> int:
    return 3 if isinstance(listed, _Appended) else 2


class _Appended(_Listed):
    """One that grows in a loop over the samples."""


def _lists(function: ast.FunctionDef, samples: str) -> Mapping[str, _Listed]:
    found: dict[str, _Listed] = {}
    for each in function.body:
        match each:
            case ast.Assign([ast.Name(name)], value):
                listed = _comprehended(value, samples)
                if listed is not None:
                    found[name] = listed
            case ast.Assign(
                [ast.Tuple(targets)], ast.Call(ast.Name("zip"), [ast.Starred(ast.Name(given))])
            ) if given == samples:
                for place, target in enumerate(targets):
                    if isinstance(target, ast.Name):
                        found[target.id] = _Listed(f"[{place}]", target, None)
            case ast.For(target, ast.Name(given), body) if given == samples:
                for statement in body:
                    match statement:
                        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [item])):
                            listed = _item(item, target)
                            if listed is not None:
                                found[name] = _Appended(listed.path, item, listed.tolist)
    return found


def _comprehended(value: ast.expr, samples: str) -> _Listed | None:
    match value:
        case ast.ListComp(item, [ast.comprehension(target, ast.Name(given), [])]) if (
            given == samples
        ):
            return _item(item, target)
    return None


def _item(item: ast.expr, target: ast.expr) -> _Listed | None:
    """Which field of a sample this is, where `target` stands for the sample."""
    tolist = None
    match item:
        case ast.Call(ast.Attribute(value, "tolist"), [], []) | ast.Call(
            ast.Name("list"), [value], []
        ):
            tolist, item = item, value
    path = ""
    while isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant):
        path, item = f"[{item.slice.value!r}]{path}", item.value
    if not isinstance(item, ast.Name):
        return None
    if isinstance(target, ast.Name) and target.id == item.id:
        return _Listed(path, item, tolist)
    if isinstance(target, ast.Tuple):
        for place, each in enumerate(target.elts):
            if isinstance(each, ast.Name) and each.id == item.id:
                return _Listed(f"[{place}]{path}", item, tolist)
    return None


def _stacked(call: ast.Call, listed: _Listed, seen: SampleField | None) -> ast.expr | None:
    """One copy of this field of all samples, in place of this call; None where it is not known to
    be the same."""
    if seen is None or not seen.alike or seen.type not in _TYPES or not seen.shape:
        return None
    kind = _KINDS.get(seen.dtype or "")
    if kind is None or any(each.arg not in _KEPT for each in call.keywords):
        return None
    array = seen.kind == "ndarray"
    if listed.tolist is None and not array:
        return None  # torch makes no tensor of a list of tensors
    dtype = _OF_LISTS[called(call)] or (_OF_NUMBERS[kind] if listed.tolist is not None else None)
    stack = "np.stack" if array else "torch.stack"
    made = expression(f"torch.as_tensor({stack}(given))")
    assert isinstance(made, ast.Call) and isinstance(made.args[0], ast.Call)
    made.args[0].args = [_without(call.args[0], listed)]
    made.keywords = list(call.keywords)
    if dtype is not None and not any(each.arg == "dtype" for each in made.keywords):
        made.keywords.append(ast.keyword("dtype", expression(dtype)))
    return made


def _without(given: ast.expr, listed: _Listed) -> ast.expr:
    """The list itself, of fields in place of lists."""
    if isinstance(given, ast.ListComp) and listed.tolist is not None:
        assert isinstance(listed.tolist.func, ast.Attribute)
        return ast.ListComp(listed.tolist.func.value, given.generators)
    return given
