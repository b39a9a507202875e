"""Code that reads a row of a tensor or an array at once, not its elements one by one."""

from __future__ import annotations

import ast

from ....profiler.base.metadata import clean
from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import identifier
from ..inputs import all_held, held_code
from ..loader_code import dataset_class
from ..template import with_imports_of
from .element_reads import ElementReads, element_reads
from .kind import Hot


def elements_of(case: Case) -> tuple[Part, ElementReads] | None:
    """The first data set that reads elements in a loop, and which."""
    found = ((part, element_reads(part)) for part in case.inspection.parts)
    return next(((part, reads) for part, reads in found if reads is not None), None)


def elements_code(case: Case, hot: Hot | None = None) -> str:
    """The method with lists that are made once; to be written by hand if it uses names of its
    module, or if only a person can write it."""
    part, reads = elements_of(case) or (None, None)
    method = reads.method if reads is not None else None
    if part is None or reads is None or method is None:
        return _by_hand(case, hot, reads)
    name, owner = method.name, identifier(part.name, "the data set")
    code = (held.code for p, held in all_held(case.dataset, reads.attribute.kind) if p is part)
    reach = next(code, None)
    body = "".join(f"#     {line}\n" for line in ast.unparse(method).splitlines())
    method.name = "rows_at_once"
    function = with_imports_of(method)
    if reach is None or function is None:
        return f"# By hand: {name} of {owner}, with each row read once\n{body}"
    return (
        f"{function}\n\n\n"
        f"type({reach.rpartition('.')[0]}).{name} = rows_at_once  # or write it into {owner}\n"
    )


def _by_hand(case: Case, hot: Hot | None, reads: ElementReads | None) -> str:
    held = reads or held_code(case.dataset, "tensor")
    name = identifier(held.attribute.name, "values") if held is not None else "values"
    lines = sorted(reads.lines) if reads is not None else []
    if hot is not None and hot.text:
        lines.append(f"{hot.place or '__getitem__'}: {hot.text}")
    return (
        f"# By hand: in {dataset_class(case)}, read the row once, before the loop, and compute "
        "with the whole of it:\n"
        f"#     row = self.{name}[index]\n"
        "# or, if numbers are needed one by one, row = row.tolist(). In place of\n"
        + "".join(f"#     {clean(line, 100)}\n" for line in lines or ["each element"])
    )
