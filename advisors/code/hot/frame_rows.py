"""Arrays in place of the DataFrames and Series that a data set reads row by row: as code where that
gives the same, by hand where the source writes to rows or takes several columns of one, which only
arrays made for it make fast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from ....profiler.base.metadata import clean
from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import parsed
from ..inputs import Held, all_held
from ..loader_code import dataset_class
from ..template import code_from
from .kind import Hot

_PLACES = frozenset({"iloc", "loc", "iat", "at"})
# What makes another Series of a row: no faster than before where pandas does it.
_PARTS = frozenset({"drop", "filter", "reindex", "apply", "map", "dropna", "fillna"})
_SEVERAL = frozenset({"list", "texts", "paths", "numbers", "ndarray", "other"})


def rows_code(case: Case, hot: Hot | None = None) -> str:
    """What takes rows from arrays from then on."""
    held = [(part, each) for part, each in all_held(case.dataset, "dataframe") if _read(part, each)]
    found = [each for _, each in held]
    if not held or any(_needs_hand(part) for part, _ in held):
        return _by_hand(case, found, hot)
    use = "".join(
        f"{each.code} = stand_in({each.code})  # or in __init__ of {each.owner}\n" for each in found
    )
    return code_from(
        "frames", "StandIn", "Lookup", "Column", "Row", "Columns", "stand_in", then=use
    )


def _read(part: Part, found: Held) -> bool:
    return not part.getitem or any(f".{found.attribute.name}" in line for line in part.getitem)


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
    rows = set(_row_names(tree, frames))

    def is_row(node: ast.AST) -> bool:
        return _is_place(node) or (isinstance(node, ast.Name) and node.id in rows)

    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            if is_row(node.value) or _is_place(node) or _frame(node.value, frames):
                return True  # written to
        elif isinstance(node, ast.Subscript):
            key = node.slice
            if _is_place(node) and is_row(node.value.value):  # type: ignore[attr-defined]
                return True  # row.iloc[0]
            if _is_place(node) and isinstance(key, ast.Tuple) and len(key.elts) == 2:
                key = key.elts[1]
            elif not (_is_place(node) or is_row(node.value) or _frame(node.value, frames)):
                continue
            if isinstance(key, ast.Slice | ast.List) or (
                isinstance(key, ast.Attribute) and key.attr in several
            ):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in _PARTS and is_row(node.value):
            return True
    return False


def _row_names(tree: ast.AST, frames: set[str]) -> Iterator[str]:
    """Local names of rows, and of frames."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if _is_place(node.value) or _frame(node.value, frames):
                yield from (each.id for each in targets if isinstance(each, ast.Name))


def _is_place(node: ast.AST) -> TypeGuard[ast.Subscript]:
    """Whether this is `….iloc[…]`."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in _PLACES
    )


def _frame(node: ast.AST, frames: set[str]) -> bool:
    """Whether this is `self.frame`."""
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in frames
    )
