"""Edits of single lines: less is read, searched or computed for the same sample."""

from __future__ import annotations

from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.helpers import parse_template_expression

from ..advisors.code.shapes import NOT_NEEDED
from .arguments import with_argument
from .edits import Edits
from .hoisting import add_import, add_to_end, assignment
from .method import Method, last_name, names_in, parsed
from .nodes import passed_as
from .project import parts_like
from .sites import enclosing

# What works on every pixel, and what makes pictures smaller.
_PER_PIXEL = ("filter", "convert", "enhance", "gaussian_blur", "point", "equalize", "blur")
_SMALLER = ("resize", "thumbnail", "crop", "reduce")
_COPIES = ("array", "tensor", "copy", "asarray", "float", "astype", "ascontiguousarray")
# Conversions of a number: the dtype that torch makes of their results.
_TENSORS = ("torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.LongTensor")
_DTYPES = {"float": "torch.float32", "int": "torch.int64", "bool": "torch.bool"}


def leave_out(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """A call that training does without goes."""
    call = m.Call(m.MatchIfTrue(lambda called: method.source.text(called) in NOT_NEEDED))
    if not m.matches(statement, m.SimpleStatementLine([m.Expr(call)])):
        return False
    edits.edit(method.source, statement, lambda _: cst.RemoveFromParent())
    return True


def map_memory(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`np.load` of which a part is used reads that part alone."""
    source = method.source
    loads = parts_like(
        statement, m.Call(m.Attribute(m.Name("np") | m.Name("numpy"), m.Name("load")))
    )
    if len(loads) != 1 or passed_as(loads[0], "mmap_mode") or ".npz" in source.text(loads[0]):
        return False
    (load,) = loads
    parts, assign = [next(source.parents(load))], assignment(statement)
    if assign is not None and assign[1] is load:
        parts = [next(source.parents(use)) for use in method.uses(assign[0])]
        if method.changed(assign[0]):
            return False
    if not parts or not all(isinstance(each, cst.Subscript) for each in parts):
        return False
    copied = f"{load.func.value.value}.array({{part}})"
    for part in parts:
        edits.edit(source, part, lambda node: parse_template_expression(copied, part=node))
    mode = cst.SimpleString('"r"')
    edits.edit(source, load, lambda node: with_argument(node, "mmap_mode", mode))
    return True


def read_the_part(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`f["x"][:][z]` reads `f["x"][z]` alone."""
    all_of_it = m.Slice(lower=None, upper=None, step=None) | m.Index(m.Tuple([]) | m.Ellipsis())
    whole = m.Subscript(m.Subscript(), [m.SubscriptElement(all_of_it)])
    for node in parts_like(statement, m.Subscript(whole, [m.SubscriptElement()])):
        edits.edit(method.source, node.value, lambda updated: updated.value)
        return True
    return False


def look_up(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """A search through a list or a frame becomes a look-up in an index made in `__init__`."""
    init = method.constructor
    if method.self_name is None or init is None:
        return False
    own = method.self_name
    owner = init.params.params[0].name.value
    held = m.Attribute(m.Name(own), m.Name())

    def looked_up(node: Any, new: str, made: str, key: cst.BaseExpression) -> bool:
        edits.replace(method.source, node, parse_template_expression(new, key=key))
        add_to_end(edits, method, init, *parsed(f"{owner}.{made}\n", method.source))
        return True

    for node in parts_like(
        statement, m.Call(m.Attribute(held, m.Name("index")), [m.Arg(keyword=None)])
    ):
        attribute = node.func.value.attr.value
        name = method.free_name(f"{attribute}_at")
        # The first of equal values, as `index` finds it.
        places = f"place for place, value in reversed(list(enumerate({owner}.{attribute})))"
        made = f"{name} = {{value: {places}}}"
        return looked_up(node, f"{own}.{name}[{{key}}]", made, node.args[0].value)
    compared = m.Comparison(comparisons=[m.ComparisonTarget(m.Equal())])
    for node in parts_like(statement, m.Subscript(held, [m.SubscriptElement(m.Index(compared))])):
        column, key = _column_compared(node)
        if column is None or not names_in(key) & method.varying:
            continue
        attribute = node.value.attr.value
        name = method.free_name(f"{attribute}_rows")
        made = f"{name} = {owner}.{attribute}.groupby({column}).indices"
        new = f"{own}.{attribute}.iloc[{own}.{name}.get({{key}}, [])]"
        return looked_up(node, new, made, key)
    return False


def _column_compared(node: Any) -> tuple[str | None, Any]:
    """(the column's name as source, the value) of `self.df[self.df["id"] == value]`."""
    comparison = node.slice[0].slice.value
    sides = comparison.left, comparison.comparisons[0].comparator
    text = m.SubscriptElement(m.Index(m.SimpleString()))
    for column, value in (sides, sides[::-1]):
        if m.matches(
            column, m.Subscript(slice=[text]) | m.Attribute()
        ) and column.value.deep_equals(node.value):
            plain = isinstance(column, cst.Attribute)
            name = f'"{column.attr.value}"' if plain else column.slice[0].slice.value.value
            return name, value
    return None, None


def make_smaller_first(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`x = x.filter(…)` right before `x = x.resize(…)` changes places with it."""
    body = next(method.source.parents(statement))
    if not isinstance(body, cst.IndentedBlock) or not _works_on(statement, _PER_PIXEL):
        return False
    at = list(body.body).index(statement)  # type: ignore[arg-type]
    if at + 1 >= len(body.body) or not _works_on(body.body[at + 1], _SMALLER):
        return False
    here, there = assignment(statement), assignment(body.body[at + 1])
    if here is None or there is None or here[0] != there[0]:
        return False

    def swapped(node: cst.IndentedBlock) -> cst.IndentedBlock:
        lines = list(node.body)
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
        return node.with_changes(body=lines)

    edits.edit(method.source, body, swapped)
    return True


def _works_on(statement: cst.CSTNode, names: tuple[str, ...]) -> bool:
    """Whether it is `x = x.name(…)`, or `x = name(x, …)`."""
    match assignment(statement):
        case (name, cst.Call(func) as value):
            return last_name(func).lower() in names and name in names_in(value)
    return False


def whole_array(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`torch.tensor([float(v) for v in row])` makes the tensor of `row` itself."""
    source = method.source
    plain = m.CompFor(target=m.Name(), ifs=[], inner_for_in=None, asynchronous=None)
    loops = m.ListComp(m.Call(args=[m.Arg(m.Name())]), plain)
    for node in parts_like(statement, m.Call(args=[m.Arg(loops, keyword=None)])):
        loop, called = node.args[0].value, source.text(node.func)
        dtype = _DTYPES.get(source.text(loop.elt.func))
        if called not in _TENSORS[:2] or dtype is None:
            continue
        if not loop.elt.args[0].value.deep_equals(loop.for_in.target):
            continue
        new = f"{called}({{rows}}, dtype={dtype})"
        edits.replace(source, node, parse_template_expression(new, rows=loop.for_in.iter))
        return True
    return False


def stack_samples(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`torch.tensor([x.tolist() for x in samples])`, `torch.tensor(samples)` and the like copy
    each array at once."""
    source = method.source
    lists = m.Arg(m.ListComp() | m.Name(), keyword=None)
    of_method = m.Call(m.Attribute(attr=m.Name("tolist")), [])
    to_list = of_method | m.Call(m.Name("list"), [m.Arg()])
    for node in parts_like(statement, m.Call(args=[lists, m.ZeroOrMore()])):
        arrays = node.args[0].value
        named = isinstance(arrays, cst.Name) and arrays.value not in method.varying
        if source.text(node.func) not in _TENSORS or named:
            continue
        if m.matches(arrays, m.ListComp(to_list)):
            made = arrays.elt
            arrays = arrays.with_changes(elt=(made.args[0] if made.args else made.func).value)
        each = m.ListComp(m.Name(), m.CompFor(m.Name(), m.Name(), ifs=[]))
        if m.matches(arrays, each) and arrays.elt.deep_equals(arrays.for_in.target):
            arrays = arrays.for_in.iter
        stacked = parse_template_expression("np.stack({arrays})", arrays=arrays)
        first = node.args[0].with_changes(value=stacked)
        edits.replace(source, node, node.with_changes(args=[first, *node.args[1:]]))
        add_import(edits, method.source, "numpy", "np")
        return True
    return False


# Whole batches.


def fetch_batches(edits: Edits, method: Method, kinds: dict[str, str]) -> bool:
    """Give the class a `__getitems__` that looks a batch up at once. `kinds`: attribute → "tensor"
    or "ndarray", of those that are one."""
    source, plain = method.source, method.node.params.params
    if method.self_name is None or method.owner is None or method.method("__getitems__"):
        return False
    if method.node.name.value != "__getitem__" or len(plain) != 2:
        return False
    if enclosing(source, method.owner, cst.FunctionDef) is not None:
        return False
    index = m.SubscriptElement(m.Index(m.Name(plain[1].name.value)))
    row = m.Subscript(m.Attribute(m.Name(method.self_name), m.Name()), [index])
    rows = m.Tuple([m.AtLeastN(m.Element(row), n=1)])
    named = m.Dict([m.AtLeastN(m.DictElement(value=row), n=1)])
    docstring = m.SimpleStatementLine([m.Expr(m.SimpleString())])
    body = [each for each in method.statements if not m.matches(each, docstring)]
    if len(body) != 1 or not m.matches(
        body[0], m.SimpleStatementLine([m.Return(row | rows | named)])
    ):
        return False
    value = body[0].body[0].value
    fields = [each.value for each in getattr(value, "elements", ())] or [value]
    columns = [each.value.attr.value for each in fields]
    if not kinds.keys() >= {*columns}:
        return False
    text = _getitems(method, value, [(name, kinds[name]) for name in columns])
    (function,) = parsed(text, source)
    function = function.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    edits.edit(source, method.node, lambda node: cst.FlattenSentinel([node, function]))
    if "np." in text:
        add_import(edits, source, "numpy", "np")
    if "torch." in text:
        add_import(edits, source, "torch")
    return True


def _getitems(method: Method, value: Any, columns: list[tuple[str, str]]) -> str:
    own = method.self_name
    rows = {"tensor": "torch.as_tensor(indices)", "ndarray": "np.asarray(indices)"}
    used = list(dict.fromkeys(kind for _, kind in columns))
    names = {kind: "rows" if len(used) == 1 else f"{kind}_rows" for kind in used}
    lines = [f"def __getitems__({own}, indices):"]
    lines += [f"    {names[kind]} = {rows[kind]}" for kind in used]
    parts = ", ".join(f"{own}.{name}[{names[kind]}]" for name, kind in columns)
    if isinstance(value, cst.Tuple):
        lines.append(f"    return list(zip({parts}))")
    elif m.matches(value, m.Dict()):
        keys = ", ".join(method.source.module.code_for_node(each.key) for each in value.elements)
        lines.append(f"    columns = zip({parts})")
        lines.append(f"    return [dict(zip(({keys},), row)) for row in columns]")
    else:
        lines.append(f"    return list({parts})")
    return "\n".join(lines) + "\n"
