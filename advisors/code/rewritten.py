"""A method written anew without the waste that its source shows; only where that is certain to give
the same samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .method import Method, bound_by, called, calls_in, read_by
from .shapes import taken_of_whole
from .syntax import Replaced, statement

# What must not be kept from one process to the next, or moves on as it is read.
_OPENS = ("open", "connect", "File", "Client", "Session", "Environment", "socket", "ZipFile",
          "create_connection", "ParquetFile", "iter", "iterdir", "scandir", "walk")  # fmt: skip
# Calls and methods that only read what they are given, or what they are of.
_READS = (
    *("len", "int", "float", "str", "bool", "sorted", "list", "tuple", "set", "dict", "sum"),
    *("min", "max", "enumerate", "zip", "range", "tensor", "array", "print", "repr", "hash"),
    *("get", "keys", "values", "items", "index", "count", "split", "startswith", "endswith"),
    *("strip", "lower", "upper", "encode", "copy", "clone", "mean", "tolist", "item", "find"),
)
_KEYS = ("texts", "paths", "numbers")


def rewritten(
    source: Sequence[str], line: str, key: str, held: dict[str, str], copies: bool
) -> ast.FunctionDef | None:
    """The method without the waste of this shape on this line; None where that is not certain.
    `held` are the kinds of the data set's attributes; `copies`: collating copies what it gets."""
    method = Method(source)
    found = method.at(line)
    if found is None or method.function is None or not _plain(method.function):
        return None
    match key:
        case "not needed":
            made = _left_out(method, found)
        case "same" if not method.varies(read_by(found)):
            made = _once(method, found, copies)
        case "whole for a part":
            made = _of_part(method, found)
        case "searched":
            made = _looked_up(method, found, held)
        case _:
            return None
    if made is None:
        return None
    made.returns = None  # what annotations name may be unknown where the code is pasted
    for argument in made.args.args:
        argument.annotation = None
    return ast.fix_missing_locations(made)


def _plain(function: ast.FunctionDef) -> bool:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    scopes = (ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)
    inner = [each for each in ast.walk(function) if each is not function]
    return (
        not function.decorator_list
        and not names & {"super", "__class__", "locals", "vars"}
        and not any(isinstance(each, scopes) for each in inner)
    )


def _left_out(method: Method, found: ast.stmt) -> ast.FunctionDef | None:
    """Without a call whose result nobody uses."""
    if not isinstance(found, ast.Expr):
        return None
    return _with(method, found, [])


def _of_part(method: Method, found: ast.stmt) -> ast.FunctionDef | None:
    """With an index in place of everything and then an index."""
    node = taken_of_whole(found, method)
    if node is None or not isinstance(node.value, ast.Subscript):
        return None
    node.value = node.value.value
    return method.function


def _once(method: Method, found: ast.stmt, copies: bool) -> ast.FunctionDef | None:
    """With what is the same for every sample made at first use, and kept."""
    owner = _within(method, found)
    if owner is None:
        return None
    made = owner.body[0] if isinstance(owner, ast.With) else owner
    match made:
        case ast.Assign([ast.Name(name)]) if method.function is not None:
            own = method.function.args.args[0].arg
        case _:
            return None
    opens = any(called(call) in _OPENS for call in calls_in(made))
    written = {
        node.attr
        for node in ast.walk(method.function)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    read = {node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)}
    bound = [each for other in method.statements for each in bound_by(other)]
    kept = f"_{name}_once"
    if opens or read & written or bound.count(name) != 1 or kept in read:
        return None
    if not _only_read(method, name, copies, {name}):
        return None
    made.targets = [ast.Attribute(ast.Name(own, ast.Load()), kept, ast.Store())]
    guarded = statement(f"if {kept!r} not in {own}.__dict__:\n    pass")
    assert isinstance(guarded, ast.If)
    guarded.body = [owner]
    return _with(method, owner, [guarded, statement(f"{name} = {own}.{kept}")])


def _within(method: Method, found: ast.stmt) -> ast.stmt | None:
    """The `with` that this is, or stands in alone; else itself, where it is no block."""
    for each in method.statements:
        if isinstance(each, ast.With) and len(each.body) == 1 and found in (each, *each.body):
            names = {*bound_by(each)}
            after = method.after(each.body[0])
            used = {n.id for a in after for n in ast.walk(a) if isinstance(n, ast.Name)}
            if not names & used and not method.varies(item.context_expr for item in each.items):
                return each
    return found if isinstance(found, ast.Assign) else None


def _only_read(method: Method, name: str, copies: bool, seen: set[str]) -> bool:
    """Whether nothing changes what this name stands for, or what is taken of it."""
    assert method.function is not None
    parents = {
        child: node for node in ast.walk(method.function) for child in ast.iter_child_nodes(node)
    }
    uses = [
        node
        for node in ast.walk(method.function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return all(_reads(method, node, parents, copies, seen) for node in uses)


def _reads(
    method: Method,
    node: ast.AST,
    parents: dict[ast.AST, ast.AST],
    copies: bool,
    seen: set[str],
) -> bool:
    parent = parents[node]
    taken = node if isinstance(node, ast.Subscript) else None
    match parent:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.FormattedValue() | ast.If():
            return True
        case ast.Subscript(value, _, ast.Load()):
            return value is not node or _reads(method, parent, parents, copies, seen)
        case ast.Slice():
            return True
        case ast.Attribute(_, attribute):
            call = parents[parent]
            return isinstance(call, ast.Call) and call.func is parent and attribute in _READS
        case ast.Call():
            return node in parent.args and called(parent) in _READS
        case ast.Tuple() | ast.List() | ast.Dict():
            return _reads(method, parent, parents, copies, seen) if taken is not None else False
        case ast.Return():
            return copies and not isinstance(node, ast.Name)
        case ast.Assign([ast.Name(other)]) if taken is not None:
            again = {*seen, other}
            return other in seen or _only_read(method, other, copies, again)
    return False


def _looked_up(method: Method, found: ast.stmt, held: dict[str, str]) -> ast.FunctionDef | None:
    """With a dict of places, or a set, made at first use in place of a list that is searched."""
    assert method.function is not None
    own = method.function.args.args[0].arg
    for node in ast.walk(found):
        match node:
            case ast.Call(
                ast.Attribute(ast.Attribute(ast.Name(base), name) as listed, "index"), [wanted], []
            ) if base == own and held.get(name) in _KEYS:
                made = f"{{value: n for n, value in reversed([*enumerate({own}.{name})])}}"
                other: ast.expr = ast.Subscript(_kept(listed, "places"), wanted, ast.Load())
                kept = f"_{name}_places"
            case ast.Compare(
                left, [ast.In() | ast.NotIn()], [ast.Attribute(ast.Name(base), name) as listed]
            ) if base == own and held.get(name) in _KEYS:
                made, kept = f"frozenset({own}.{name})", f"_{name}_set"
                other = ast.Compare(left, node.ops, [_kept(listed, "set")])
            case _:
                continue
        if any(name in _stored_in(method) for name in (name, kept)):
            return None
        Replaced({node: other}).generic_visit(found)
        first = statement(f"if {kept!r} not in {own}.__dict__:\n    {own}.{kept} = {made}")
        start = 0 if ast.get_docstring(method.function) is None else 1
        method.function.body[start:start] = [first]
        return method.function
    return None


def _stored_in(method: Method) -> Iterator[str]:
    """Attributes that the method gives a value."""
    for node in ast.walk(method.function or ast.Module([], [])):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr


def _kept(listed: ast.Attribute, what: str) -> ast.Attribute:
    return ast.Attribute(listed.value, f"_{listed.attr}_{what}", ast.Load())


def _with(method: Method, old: ast.stmt, new: list[ast.stmt]) -> ast.FunctionDef | None:
    """The method with these statements in place of one."""
    for node in ast.walk(method.function or ast.Module([], [])):
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(body, list) and old in body:
                place = body.index(old)
                body[place : place + 1] = new
                body.extend([] if body else [ast.Pass()])
                return method.function
    return None
