"""Code that reads a row of a tensor or an array at once, in place of its elements one by one."""

from __future__ import annotations

import ast

from ....profiler.base.metadata import clean
from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import free_names, identifier
from ..inputs import all_held, held_code
from ..loader_code import dataset_class
from .element_reads import ElementReads, element_reads
from .kind import Hot

_IMPORTS = {
    "torch": "import torch",
    "np": "import numpy as np",
    "numpy": "import numpy",
    "math": "import math",
}


def elements_of(case: Case) -> tuple[Part, ElementReads] | None:
    """The first data set that reads elements in a loop, and which."""
    for part in case.inspection.parts:
        found = element_reads(part)
        if found is not None:
            return part, found
    return None


def elements_code(case: Case, hot: Hot | None = None) -> str:
    """The method with lists made once; by hand where it uses more than that can keep, or what only
    its module has."""
    found = elements_of(case)
    if found is None:
        return _told(case, hot)
    part, reads = found
    method = reads.method
    if method is None:
        return _told(case, hot, reads)
    name, owner = method.name, identifier(part.name, "the data set")
    reach = next(
        (h.code for p, h in all_held(case.dataset, reads.attribute.kind) if p is part), None
    )
    lacking = free_names(method_tree := ast.Module([method], [])) - _IMPORTS.keys()
    if lacking or reach is None:
        body = "".join(f"#     {line}\n" for line in ast.unparse(method).splitlines())
        return f"# By hand: {name} of {owner}, with each row read once\n{body}"
    imports = [line for key, line in _IMPORTS.items() if key in free_names(method_tree)]
    method.name = "rows_at_once"
    head = "\n".join([*imports, "", "", ""]) if imports else ""
    dataset = reach.rpartition(".")[0]
    return (
        f"{head}{ast.unparse(method)}\n\n\ntype({dataset}).{name} = rows_at_once  # or write it "
        f"into {owner}\n"
    )


def _told(case: Case, hot: Hot | None, reads: ElementReads | None = None) -> str:
    held = held_code(case.dataset, "tensor")
    name = (
        reads.attribute.name
        if reads is not None
        else held.attribute.name
        if held is not None
        else "values"
    )
    lines = sorted(reads.lines) if reads is not None else []
    lines += (
        [clean(f"{hot.place or '__getitem__'}: {hot.text}", 100)]
        if hot is not None and hot.text
        else []
    )
    return (
        f"# By hand: in {dataset_class(case)}, read the row once, before the loop, and compute "
        "with the whole of it:\n"
        f"#     row = self.{identifier(name, 'values')}[index]\n"
        "# or, where numbers are needed one by one, row = row.tolist(). In place of\n"
        + "".join(f"#     {clean(line, 100)}\n" for line in lines or ["each element"])
    )
