"""Code for a line of a known shape: the method without its waste, or what to write by hand."""

from __future__ import annotations

import ast

from ...profiler.base.metadata import clean
from ...profiler.store.inspection import Part
from ..case.case import Case
from ..case.code_text import identifier
from .inputs import reached
from .loader_form import is_default_collate
from .rewritten import rewritten
from .shapes import Shape


def kinds_of(part: Part) -> dict[str, str]:
    """The kinds of a data set's attributes, by name."""
    return {each.name: each.kind for each in part.attributes}


def shape_code(case: Case, part: Part, line: str, shape: Shape, at: str = "") -> str:
    """The method of this part's class, written anew where that is certain to give the same
    samples; else a comment. `at`: where the line is (" (train.py:41)")."""
    by_hand = f"# By hand{at}: {shape.do}\n#     {clean(line, 100)}\n"
    path = next((path for other, path in reached(case.dataset or Part()) if other is part), None)
    collate = case.config.get("collate_fn")
    copies = is_default_collate(collate if isinstance(collate, str) else None)
    method = rewritten(part.getitem, line, shape.key, kinds_of(part), copies)
    if path is None or method is None:
        return by_hand
    name, owner = method.name, identifier(part.name, "the data set")
    method.name, method.args.defaults = "without_waste", []  # the defaults are its own
    taken = f"own.{name}"
    return (
        f"import types\n\n\n{ast.unparse(method)}\n\n\n"
        f"own = type({path})\n"
        f"{taken} = types.FunctionType(  # or write it into {owner}\n"
        f'    without_waste.__code__, {taken}.__globals__, "{name}", {taken}.__defaults__\n)\n'
    )
