"""What shapes are asked about, and what to write by hand for a line of a known shape."""

from __future__ import annotations

from ...profiler.base.metadata import clean
from ...profiler.store.inspection import Part
from .method import Method
from .shapes import DEQUE, MANY, METHOD, PROXY, Shape, changing


def kinds_of(part: Part) -> dict[str, str]:
    """The kinds of a data set's attributes and methods, by name, as `shape_of` takes them."""
    methods = [Method(source) for source in (part.getitem, part.getitems, part.iter, *part.helpers)]
    lengths = {each.name: each.length or (each.shape or (0,))[0] for each in part.attributes}
    return {
        **{each.name: each.kind for each in part.attributes},
        **{each.name: DEQUE for each in part.attributes if each.type.endswith(DEQUE)},
        **{each.name: PROXY for each in part.attributes if each.type.endswith(PROXY)},
        **{f"{each.name}[]": each.items for each in part.attributes if each.items is not None},
        **{f"{name}#": f"{length:,}" for name, length in lengths.items() if length >= MANY},
        **{f"global {each.name}": each.kind for each in part.globals},
        **{each.name: METHOD for each in methods[3:] if each.name},
        **dict.fromkeys(changing(methods), ""),
    }


def shape_code(line: str, shape: Shape, at: str = "") -> str:
    """What to write in place of this line, as a comment; `at` is where it is (" (train.py:41)")."""
    return f"# By hand{at}: {shape.do}\n#     {clean(line, 100)}\n"
