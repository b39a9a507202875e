"""Arrays in place of the DataFrames and Series that a data set reads row by row.

Where the source writes to rows, or takes several columns of one, the change is described, to be
made by hand.
"""

from __future__ import annotations

import ast

from ....profiler.base.metadata import clean
from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import parsed
from ..inputs import Held, all_held
from ..loader_code import dataset_class
from ..method import names_of
from ..template import code_from
from .kind import Hot

_SEVERAL = frozenset({"list", "texts", "paths", "numbers", "ndarray", "other"})


def rows_code(case: Case, hot: Hot | None = None) -> str:
    """What takes rows from arrays from then on."""
    # Where a line is known to read rows, a data set without source is not what it is in.
    sources = any(part.getitem for part in case.inspection.parts)
    seen = hot is not None and hot.place is not None and sources
    held = [
        (part, each)
        for part, each in all_held(case.dataset, "dataframe")
        if (_read(part, each) if part.getitem else not seen)
    ]
    found = [each for _, each in held]
    if not held or any(_needs_hand(part) for part, _ in held):
        return _by_hand(case, found, hot)
    use = "".join(
        f"{each.code} = stand_in({each.code})  # or in __init__ of {each.owner}\n" for each in found
    )
    return code_from("frames", then=use)


def _read(part: Part, found: Held) -> bool:
    return any(f".{found.attribute.name}" in line for line in part.getitem)


def _by_hand(case: Case, found: list[Held], hot: Hot | None) -> str:
    owner = found[0].owner if found else dataset_class(case)
    frame = f"self.{found[0].attribute.name}" if found else "frame"
    place = f" {clean(hot.place, 80)}" if hot is not None and hot.place is not None else ""
    return (
        f"# By hand: in __init__ of {owner}, what is taken of each row, as arrays:\n"
        f"#     self.values = {frame}[names].to_numpy()     # the columns that are read together\n"
        f'#     self.labels = {frame}["label"].to_numpy()    # a column that is read alone\n'
        f"# in __getitem__{place}, instead of rows of the DataFrame:\n"
        "#     self.values[index], self.labels[index]\n"
    )


def _needs_hand(part: Part) -> bool:
    """Whether rows are written to, or several columns of a row are taken at once."""
    tree = parsed(part.getitem)
    if tree is None:
        return True
    frames = {a.name for a in part.attributes if a.kind == "dataframe"}
    several = {a.name for a in part.attributes if a.kind in _SEVERAL}
    rows: set[str] = set()  # local names of rows, and of frames
    loops = [each for each in ast.walk(tree) if isinstance(each, ast.For | ast.comprehension)]
    one_each = names_of(*(each.target for each in loops))  # a column after another

    def is_row(node: ast.AST | None) -> bool:
        match node:
            case ast.Subscript(ast.Attribute(_, "iloc" | "loc" | "iat" | "at")):
                return True
        return isinstance(node, ast.Name) and node.id in rows

    def holds(node: ast.AST | None) -> bool:
        return is_row(node) or (isinstance(node, ast.Attribute) and node.attr in frames)

    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign([ast.Name(name), *_], value)
                | ast.NamedExpr(ast.Name(name), value)
                | ast.AnnAssign(ast.Name(name), _, value)
            ) if holds(value):
                rows.add(name)
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(of, _, ast.Store() | ast.Del()) | ast.Attribute(
                of, _, ast.Store() | ast.Del()
            ) if is_row(node) or holds(of):
                return True
            # pandas makes another Series of the row, whatever is done for its rows.
            case ast.Attribute(
                of, "drop" | "filter" | "reindex" | "apply" | "map" | "dropna" | "fillna"
            ) if is_row(of):
                return True
            case ast.Subscript(ast.Attribute(of), _) if is_row(node) and is_row(of):
                return True  # row.iloc[0]
            case ast.Subscript(of, key) if is_row(node) or holds(of):
                named = holds(of)
                if is_row(node) and isinstance(key, ast.Tuple):
                    key, named = key.elts[-1], True
                if isinstance(key, ast.Slice | ast.List) or (
                    isinstance(key, ast.Attribute) and key.attr in several
                ):
                    return True
                if named and isinstance(key, ast.Name) and key.id not in one_each:
                    return True  # it may be a list
    return False
