"""Edits of a method after which it gives the same samples with less work. Each says whether it fits
this statement; its pieces are then those of the method."""

from __future__ import annotations

import ast
import re
import textwrap

from .editable import Editable
from .method import bound_by, called, calls_in, names_of
from .shapes import NOT_NEEDED, taken_of_whole

# Kinds of lists that hold nothing but values that have a hash.
_KEYS = ("texts", "paths", "numbers")
# They take no time.
_QUICK = ("len", "str", "int", "float", "bool", "isinstance", "super", "getattr")


def leave_out(method: Editable, statement: ast.stmt) -> bool:
    """A call that training does without goes."""
    match statement:
        case ast.Expr(ast.Call(func)) if method.certain or ast.unparse(func) in NOT_NEEDED:
            method.pieces.append(method.file.without(statement))
            return True
    return False


def read_the_part(method: Editable, statement: ast.stmt) -> bool:
    """`f["x"][:][z]` reads `f["x"][z]` alone."""
    node = taken_of_whole(statement, method)
    if node is None or not isinstance(node.value, ast.Subscript):
        return False
    method.replace(node.value, method.file.of(node.value.value))
    return True


def look_up(method: Editable, statement: ast.stmt) -> bool:
    """A search through a list or a frame becomes a lookup in an index, made once."""
    own = method.self_name
    for node in ast.walk(statement) if own is not None else ():
        match node:
            case ast.Call(ast.Attribute(ast.Attribute(ast.Name(base), name), "index"), [key], []):
                ends, new = "at", "[{}]"
                # The first of equal values, as `index` finds it.
                made = "{{value: place for place, value in reversed(list(enumerate({})))}}"
            case ast.Compare(key, [ast.In() | ast.NotIn()], [ast.Attribute(ast.Name(base), name)]):
                ends, new, made = "set", "", "frozenset({})"
                if method.kinds.get(name) not in _KEYS:
                    continue
            case ast.Subscript(ast.Attribute(ast.Name(base), name) as frame, ast.Compare() as test):
                column, key = _column_compared(frame, test)
                if column is None or not names_of(key) & method.varying or method.certain:
                    continue
                ends, new = "rows", ".get({}, [])]"
                made = f"{{}}.groupby({column}).indices"
            case _:
                continue
        sure = method.kinds.get(name) in _KEYS or not method.certain
        if base != own or not sure or method.set_later(name):
            continue
        kept = f"{own}.{method.free_name(f'{name}_{ends}')}"
        text = f"{kept}{new.format(method.file.of(key))}"
        if isinstance(node, ast.Compare):
            method.replace(node.comparators[0], kept)
        else:
            method.replace(node, f"{own}.{name}.iloc[{text}" if ends == "rows" else text)
        _make(method, statement, kept, f"{kept} = {made.format(f'{own}.{name}')}")
        return True
    return False


def _column_compared(frame: ast.expr, test: ast.Compare) -> tuple[str | None, ast.expr]:
    """(the column's name as source, the value) of `self.df[self.df["id"] == value]`."""
    sides = test.left, test.comparators[0]
    for column, value in (sides, sides[::-1]):
        match column:
            case ast.Attribute(held, name) | ast.Subscript(held, ast.Constant(str(name))):
                if ast.unparse(held) == ast.unparse(frame) and isinstance(test.ops[0], ast.Eq):
                    return f'"{name}"', value
    return None, test


def make_once(method: Editable, statement: ast.stmt) -> bool:
    """What this statement makes, the same for every sample, is made in `__init__`, or at its first
    use."""
    if method.self_name is None or method.node.name in ("__init__", "__len__"):
        return False
    around = with_of(method, statement)
    if around is not None and _whole_with(method, around):
        return True
    if isinstance(statement, ast.With) or (around is not None and method.certain):
        return False
    match statement:
        case ast.Assign([ast.Name(name)], value) if calls_in(value) or method.certain:
            if method.may_be_kept(value) and method.stays(name):
                return _keep(method, statement, [name])
    return not hasattr(statement, "body") and _call_once(method, statement)


def with_of(method: Editable, statement: ast.stmt) -> ast.With | None:
    """The statement itself, or the `with` right around it."""
    if isinstance(statement, ast.With):
        return statement
    outer = method.file.enclosing(statement, ast.With)
    inside = outer is not None and method.node in method.file.parents(outer)
    return outer if inside else None


def _whole_with(method: Editable, around: ast.With) -> bool:
    """All of a `with` whose body only makes the same for every sample."""
    known: set[str] = set()
    for item in around.items:
        if not method.is_same(item.context_expr, known):
            return False
        known |= names_of(*filter(None, [item.optional_vars]))
    made: list[str] = []
    for each in around.body:
        match each:
            case ast.Assign([ast.Name(name)], value) if method.may_be_kept(
                value, known | {*made}
            ) and method.stays(name):
                made.append(name)
            case _:
                return False
    names = [name for name in made if _uses_outside(method, name, around)]
    if not names or any(_uses_outside(method, name, around) for name in known):
        return False
    return _keep(method, around, names)


def _uses_outside(method: Editable, name: str, moved: ast.stmt) -> list[ast.Name]:
    return [each for each in method.named(name) if moved not in method.file.parents(each)]


def _keep(method: Editable, moved: ast.stmt, names: list[str]) -> bool:
    """Move this statement; what it binds to `names` becomes attributes."""
    words = {name: f"{method.self_name}.{method.free_name(name)}" for name in names}
    for name, attribute in words.items():
        for node in _uses_outside(method, name, moved):
            method.replace(node, attribute)
    _make(method, moved, words[names[0]], method.file.moved([moved], words), goes=True)
    return True


def _call_once(method: Editable, statement: ast.stmt) -> bool:
    """A call inside of the statement that is the same for every sample; where nobody tries the
    code, one of which a part is taken that is only read."""
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call) or not method.may_be_kept(node):
            continue
        outer = next(method.file.parents(node))
        if isinstance(outer, ast.Expr) or called(node) in _QUICK:
            continue
        part = isinstance(outer, ast.Subscript | ast.Attribute) and outer.value is node
        if method.certain and not (part and method.reads(node, set())):
            continue
        if any(map(method.changed_in_place, bound_by(statement))):
            continue
        kept = f"{method.self_name}.{method.free_name(_named_after(method, node))}"
        method.replace(node, kept)
        _make(method, statement, kept, f"{kept} = {method.file.of(node)}")
        return True
    return False


def _named_after(method: Editable, node: ast.Call) -> str:
    name = called(node).strip("_").lower()
    for each in method.attributes(node):
        return f"{each.strip('_').lower()}_{name}"
    return f"{name}_made"


def _make(method: Editable, before: ast.stmt, kept: str, text: str, goes: bool = False) -> None:
    """Run these statements, which set the attribute `kept`, at the end of `__init__`; without one,
    the first time that they are needed. `before` goes if they stand in its place."""
    own, name = kept.split(".")
    init, file = method.constructor, method.file
    if init is not None:
        owner = init.args.args[0].arg
        method.add_to_end(init, re.sub(rf"\b{own}\b", owner, text))
        if goes:
            method.pieces.append(file.without(before))
        return
    first = f'if not hasattr({own}, "{name}"):\n{textwrap.indent(text, file.indent)}'
    begin, end = file.rows(before)
    new = file.indented(first if goes else f"{first}\n", file.margin(before))
    method.pieces.append((begin, end if goes else begin, new))
