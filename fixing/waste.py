"""Edits of single lines: less is read, searched or computed for the same sample."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from .edits import Edits
from .hoisting import add_import
from .method import Method, block, last_name, names_in, parsed
from .sites import enclosing

# What training does without: the interpreter and torch do it anyway.
_NOT_NEEDED = ("gc.collect", "torch.cuda.empty_cache", "torch.cuda.synchronize")
# What works on every pixel, and what makes pictures smaller.
_PER_PIXEL = ("filter", "convert", "enhance", "gaussian_blur", "point", "equalize", "blur")
_SMALLER = ("resize", "thumbnail", "crop", "reduce")
_COPIES = ("array", "tensor", "copy", "asarray", "float", "astype", "ascontiguousarray")
# Conversions of a number: the dtype that torch makes of their results.
_DTYPES = {"float": "torch.float32", "int": "torch.int64", "bool": "torch.bool"}


def leave_out(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """A call that training does without goes."""
    call = m.SimpleStatementLine([m.Expr(m.Call())])
    if not m.matches(statement, call):
        return False
    if method.source.text(statement.body[0].value.func) not in _NOT_NEEDED:  # type: ignore[attr-defined]
        return False
    edits.edit(method.source, statement, lambda _: cst.RemoveFromParent())
    return True


def map_memory(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`np.load` of which a part is used reads that part alone."""
    source = method.source
    loads = [
        node
        for node in m.findall(statement, m.Call())
        if isinstance(node, cst.Call) and source.text(node.func) in ("np.load", "numpy.load")
    ]
    if len(loads) != 1 or any(
        arg.keyword and arg.keyword.value == "mmap_mode" for arg in loads[0].args
    ):
        return False
    load = loads[0]
    if ".npz" in source.text(load):
        return False
    outer = next(source.parents(load))
    if isinstance(outer, cst.Subscript):
        parts = [outer]
    elif isinstance(outer, cst.Assign) and m.matches(outer, m.Assign([m.AssignTarget(m.Name())])):
        name = outer.targets[0].target.value  # type: ignore[attr-defined]
        found = [next(source.parents(use)) for use in method.uses(name)]
        if not found or method.changed(name):
            return False
        parts = [each for each in found if isinstance(each, cst.Subscript)]
        if len(parts) != len(found):
            return False
    else:
        return False
    numpy = source.text(load.func).partition(".")[0]
    for part in parts:
        edits.edit(
            source,
            part,
            lambda node: cst.Call(
                cst.Attribute(cst.Name(numpy), cst.Name("array")), [cst.Arg(node)]
            ),
        )
    mode = cst.Arg(
        cst.SimpleString('"r"'),
        keyword=cst.Name("mmap_mode"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    edits.edit(
        source,
        load,
        lambda node: node.with_changes(
            args=[
                *(
                    arg.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
                    for arg in node.args
                ),
                mode,
            ]
        ),
    )
    return True


def read_the_part(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`f["x"][:][z]` reads `f["x"][z]` alone."""
    whole = m.Subscript(
        slice=[
            m.SubscriptElement(
                m.Slice(lower=None, upper=None, step=None) | m.Index(m.Tuple([]) | m.Ellipsis())
            )
        ]
    )
    for node in m.findall(statement, m.Subscript(value=whole)):
        assert isinstance(node, cst.Subscript)
        assert isinstance(node.value, cst.Subscript)
        if len(node.slice) != 1 or not m.matches(node.value.value, m.Subscript()):
            continue
        inner = node.value
        edits.edit(method.source, inner, lambda updated: updated.value)
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
    for node in m.findall(
        statement, m.Call(m.Attribute(held, m.Name("index")), [m.Arg(keyword=None)])
    ):
        assert isinstance(node, cst.Call)
        assert isinstance(node.func, cst.Attribute)
        text, attribute = _held(method, node.func.value, owner)
        name = method.free_name(f"{attribute}_at")
        key = node.args[0].value
        # The first of equal values, as `index` finds it.
        places = f"value: place for place, value in reversed(list(enumerate({text})))"
        made = f"{owner}.{name} = {{{places}}}\n"
        return _looked_up(edits, method, node, _subscript(own, name, key), made)
    compared = m.Comparison(comparisons=[m.ComparisonTarget(m.Equal())])
    frame = m.Subscript(held, [m.SubscriptElement(m.Index(compared))])
    for node in m.findall(statement, frame):
        assert isinstance(node, cst.Subscript)
        column = _column_compared(node)
        if column is None:
            continue
        key_text, key = column
        if not names_in(key) & method.varying:
            continue
        text, attribute = _held(method, node.value, owner)
        name = method.free_name(f"{attribute}_rows")
        made = f"{owner}.{name} = {text}.groupby({key_text}).indices\n"
        rows = cst.parse_expression(f"{own}.{attribute}.iloc[0]")
        found = cst.Call(
            cst.Attribute(cst.Attribute(cst.Name(own), cst.Name(name)), cst.Name("get")),
            [
                cst.Arg(key, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))),
                cst.Arg(cst.List([])),
            ],
        )
        new = rows.with_changes(slice=[cst.SubscriptElement(cst.Index(found))])
        return _looked_up(edits, method, node, new, made)
    return False


def _held(method: Method, node: cst.BaseExpression, owner: str) -> tuple[str, str]:
    attribute = node.attr.value  # type: ignore[attr-defined]
    return f"{owner}.{attribute}", attribute


def _subscript(own: str, name: str, key: cst.BaseExpression) -> cst.Subscript:
    held = cst.Attribute(cst.Name(own), cst.Name(name))
    return cst.Subscript(held, [cst.SubscriptElement(cst.Index(key))])


def _column_compared(node: cst.Subscript) -> tuple[str, cst.BaseExpression] | None:
    """(the column's name as source, the value) of `self.df[self.df["id"] == value]`."""
    index = node.slice[0].slice
    assert isinstance(index, cst.Index)
    assert isinstance(index.value, cst.Comparison)
    left, right = index.value.left, index.value.comparisons[0].comparator
    for column, value in ((left, right), (right, left)):
        if isinstance(column, cst.Subscript) and column.value.deep_equals(node.value):
            key = column.slice[0].slice
            if isinstance(key, cst.Index) and isinstance(key.value, cst.SimpleString):
                return key.value.value, value
        if isinstance(column, cst.Attribute) and column.value.deep_equals(node.value):
            return f'"{column.attr.value}"', value
    return None


def _looked_up(
    edits: Edits, method: Method, node: cst.CSTNode, new: cst.BaseExpression, made: str
) -> bool:
    init = method.method("__init__")
    assert init is not None
    edits.replace(method.source, node, new)
    statements = parsed(made, method.source)
    edits.edit(
        method.source, init, lambda each: each.with_changes(body=block(each.body, statements))
    )
    return True


def make_smaller_first(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`x = x.filter(…)` right before `x = x.resize(…)` changes places with it."""
    body = next(method.source.parents(statement))
    if not isinstance(body, cst.IndentedBlock) or not _works_on(statement, _PER_PIXEL):
        return False
    at = list(body.body).index(statement)  # type: ignore[arg-type]
    if at + 1 >= len(body.body) or not _works_on(body.body[at + 1], _SMALLER):
        return False
    other = body.body[at + 1]
    if _target(statement) != _target(other):
        return False

    def swapped(node: cst.IndentedBlock) -> cst.IndentedBlock:
        lines = list(node.body)
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
        return node.with_changes(body=lines)

    edits.edit(method.source, body, swapped)
    return True


def _target(statement: cst.CSTNode) -> str | None:
    if m.matches(statement, m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name())])])):
        return str(statement.body[0].targets[0].target.value)  # type: ignore[attr-defined]
    return None


def _works_on(statement: cst.CSTNode, names: tuple[str, ...]) -> bool:
    """Whether it is `x = x.name(…)`, or `x = name(x, …)`."""
    name = _target(statement)
    if name is None:
        return False
    value = statement.body[0].value  # type: ignore[attr-defined]
    if not isinstance(value, cst.Call) or last_name(value.func).lower() not in names:
        return False
    return name in names_in(value)


def whole_array(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`torch.tensor([float(v) for v in row])` makes the tensor of `row` itself."""
    source = method.source
    plain = m.CompFor(target=m.Name(), ifs=[], inner_for_in=None, asynchronous=None)
    for node in m.findall(statement, m.Call(args=[m.Arg(m.ListComp(for_in=plain), keyword=None)])):
        assert isinstance(node, cst.Call)
        if source.text(node.func) not in ("torch.tensor", "torch.as_tensor"):
            continue
        loop = node.args[0].value
        assert isinstance(loop, cst.ListComp)
        item = loop.for_in.target
        made = loop.elt
        if not (
            isinstance(made, cst.Call)
            and len(made.args) == 1
            and isinstance(item, cst.Name)
            and m.matches(made.args[0].value, m.Name(item.value))
            and source.text(made.func) in _DTYPES
        ):
            continue
        dtype = _DTYPES[source.text(made.func)]
        new = cst.parse_expression(f"torch.tensor(0, dtype={dtype})")
        assert isinstance(new, cst.Call)
        first = new.args[0].with_changes(value=loop.for_in.iter)
        edits.replace(source, node, node.with_changes(args=[first, *new.args[1:]]))
        return True
    return False


def stack_samples(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """`torch.tensor([x.tolist() for x in samples])`, `torch.tensor(samples)` and the like copy
    each array at once."""
    source = method.source
    lists = m.Arg(m.ListComp() | m.Name(), keyword=None)
    for node in m.findall(statement, m.Call(args=[lists, m.ZeroOrMore()])):
        assert isinstance(node, cst.Call)
        name = source.text(node.func)
        if name not in ("torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.LongTensor"):
            continue
        given = node.args[0].value
        of_lists = m.Call(m.Attribute(attr=m.Name("tolist")), [])
        if isinstance(given, cst.Name):
            if given.value not in method.varying:
                continue
            arrays: cst.BaseExpression = given
        else:
            assert isinstance(given, cst.ListComp)
            arrays = given
            if m.matches(given.elt, of_lists):
                arrays = given.with_changes(elt=given.elt.func.value)  # type: ignore[attr-defined]
            elif m.matches(given.elt, m.Call(m.Name("list"), [m.Arg()])):
                arrays = given.with_changes(elt=given.elt.args[0].value)  # type: ignore[attr-defined]
        if m.matches(
            arrays, m.ListComp(m.Name(), m.CompFor(m.Name(), m.Name(), ifs=[]))
        ) and arrays.elt.deep_equals(arrays.for_in.target):  # type: ignore[attr-defined]
            arrays = arrays.for_in.iter  # type: ignore[attr-defined]
        stacked = cst.Call(cst.parse_expression("np.stack"), [cst.Arg(arrays)])
        first = node.args[0].with_changes(value=stacked)
        edits.replace(source, node, node.with_changes(args=[first, *node.args[1:]]))
        add_import(edits, method.source, "numpy", "np")
        return True
    return False


# Whole batches.


def fetch_batches(edits: Edits, method: Method, kinds: dict[str, str]) -> bool:
    """Give the class a `__getitems__` that looks a batch up at once. `kinds`: attribute → "tensor"
    or "ndarray", of those that are one."""
    if method.owner is None or method.self_name is None or method.method("__getitems__"):
        return False
    plain = method.node.params.params
    statements = [each for each in method.statements if not _is_docstring(each)]
    if method.node.name.value != "__getitem__" or len(plain) != 2 or len(statements) != 1:
        return False
    if enclosing(method.source, method.owner, cst.FunctionDef) is not None:
        return False
    index = plain[1].name.value
    if not m.matches(statements[0], m.SimpleStatementLine([m.Return()])):
        return False
    value = statements[0].body[0].value
    fields = _fields(value)
    columns = [_column(each, method.self_name, index, kinds) for each in fields or ()]
    if not columns or any(each is None for each in columns):
        return False
    text = _getitems(method, value, index, [each for each in columns if each is not None])
    (function,) = parsed(text, method.source)
    blank = [cst.EmptyLine(indent=False)]
    node = method.node

    def followed(updated: cst.FunctionDef) -> cst.FlattenSentinel[cst.BaseStatement]:
        return cst.FlattenSentinel([updated, function.with_changes(leading_lines=blank)])

    edits.edit(method.source, node, followed)
    if "np." in text:
        add_import(edits, method.source, "numpy", "np")
    if "torch." in text:
        add_import(edits, method.source, "torch")
    return True


def _is_docstring(node: cst.CSTNode) -> bool:
    return m.matches(node, m.SimpleStatementLine([m.Expr(m.SimpleString())]))


def _fields(value: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    if isinstance(value, cst.Tuple):
        return [each.value for each in value.elements if isinstance(each, cst.Element)]
    if isinstance(value, cst.Dict):
        if not all(isinstance(each, cst.DictElement) for each in value.elements):
            return None
        return [each.value for each in value.elements]
    return [value]


def _column(
    node: cst.BaseExpression, own: str, index: str, kinds: dict[str, str]
) -> tuple[str, str] | None:
    """(attribute, its kind) of `self.x[index]`."""
    row = m.SubscriptElement(m.Index(m.Name(index)))
    if not m.matches(node, m.Subscript(m.Attribute(m.Name(own), m.Name()), [row])):
        return None
    name = node.value.attr.value  # type: ignore[attr-defined]
    return (name, kinds[name]) if name in kinds else None


def _getitems(
    method: Method, value: cst.BaseExpression, index: str, columns: list[tuple[str, str]]
) -> str:
    own = method.self_name
    rows = {"tensor": "torch.as_tensor(indices)", "ndarray": "np.asarray(indices)"}
    used = list(dict.fromkeys(kind for _, kind in columns))
    names = {kind: "rows" if len(used) == 1 else f"{kind}_rows" for kind in used}
    lines = [f"def __getitems__({own}, indices):"]
    lines += [f"    {names[kind]} = {rows[kind]}" for kind in used]
    parts = [f"{own}.{name}[{names[kind]}]" for name, kind in columns]
    if isinstance(value, cst.Tuple):
        lines.append(f"    return list(zip({', '.join(parts)}))")
    elif isinstance(value, cst.Dict):
        keys = [
            method.source.module.code_for_node(each.key)
            for each in value.elements
            if isinstance(each, cst.DictElement)
        ]
        lines.append(f"    columns = zip({', '.join(parts)})")
        lines.append(f"    return [dict(zip(({', '.join(keys)},), row)) for row in columns]")
    else:
        lines.append(f"    return list({parts[0]})")
    return "\n".join(lines) + "\n"
