"""Code for a line of a known shape: the method without its waste, or what to write by hand."""

from __future__ import annotations

import ast

from ...profiler.base.metadata import clean
from ...profiler.store.inspection import Part
from ..case.case import Case
from ..case.code_text import identifier
from .inputs import reached
from .loader_form import config_text, is_default_collate
from .method import Method
from .rewritten import rewritten
from .shapes import DEQUE, MANY, METHOD, Shape, changing


def kinds_of(part: Part) -> dict[str, str]:
    """The kinds of a data set's attributes and methods, by name, as `shape_of` takes them."""
    methods = [Method(source) for source in (part.getitem, part.getitems, part.iter, *part.helpers)]
    lengths = {each.name: each.length or (each.shape or (0,))[0] for each in part.attributes}
    return {
        **{each.name: each.kind for each in part.attributes},
        **{each.name: DEQUE for each in part.attributes if each.type.endswith(DEQUE)},
        **{f"{each.name}[]": each.items for each in part.attributes if each.items is not None},
        **{f"{name}#": f"{length:,}" for name, length in lengths.items() if length >= MANY},
        **{f"global {each.name}": each.kind for each in part.globals},
        **{each.name: METHOD for each in methods[3:] if each.name},
        **dict.fromkeys(changing(methods), ""),
    }


def shape_code(
    case: Case, part: Part, source: tuple[str, ...], line: str, shape: Shape, at: str = ""
) -> str:
    """The method of this part's class without its waste, if it certainly gives the same samples;
    else a comment. `source` is the method's, `at` where the line is (" (train.py:41)")."""
    by_hand = f"# By hand{at}: {shape.do}\n#     {clean(line, 100)}\n"
    path = next((path for other, path in reached(case.dataset or Part()) if other is part), None)
    copies = is_default_collate(config_text(case, "collate_fn"))
    method = rewritten(source, line, shape.key, kinds_of(part), copies)
    if path is None or method is None:
        return by_hand
    if not method.name.startswith("__getitem") and method.args.args[0].arg != "self":
        return by_hand  # a function of its module, not a method of the data set
    name, owner = method.name, identifier(part.name, "the data set")
    method.name, method.args.defaults = "without_waste", []  # the defaults are its own
    taken = f"own.{name}"
    return (
        f"import types\n\n\n{ast.unparse(method)}\n\n\n"
        f"own = type({path})\n"
        f"{taken} = types.FunctionType(  # or write it into {owner}\n"
        f'    without_waste.__code__, {taken}.__globals__, "{name}", {taken}.__defaults__\n)\n'
    )
