"""A patch of a data set's own class: whole batches are fetched at once."""

import ast
import re

from ..advisors.code.batched.access import read_access
from ..advisors.code.batched.batch_values import NotArrays
from ..advisors.code.batched.getitems_code import getitems_function
from ..advisors.code.python_text import first_line
from ..profiler.store.run.run import LoaderRun
from .edits import Edits
from .nodes import import_of
from .project import Project, Source


def change_fetching(project: Project, edits: Edits, recorded: LoaderRun) -> bool:
    """Whole batches at once, where the data set's `__getitem__` only looks up rows."""
    for part in recorded.inspection.parts:
        if part.file is None or part.line is None or not part.getitem:
            continue
        source = project.source(part.file)
        for node in source.find(ast.FunctionDef):
            owner = source.enclosing(node, ast.ClassDef)
            if first_line(node) != part.line or owner is None or not node.args.args:
                continue
            if any(getattr(each, "name", "") == "__getitems__" for each in owner.body):
                continue
            try:
                text = getitems_function(read_access(part.getitem, part.attributes))
            except NotArrays:
                continue
            _add_getitems(edits, source, node, text)
            return True
    return False


def _add_getitems(edits: Edits, source: Source, node: ast.FunctionDef, text: str) -> None:
    text = re.sub(r"\bsource\b", node.args.args[0].arg, text).replace("    ", source.indent)
    text = text.replace("def getitems", "def __getitems__").rstrip()
    at = source.line_end(node.end_lineno or 0)
    edits.add(source, [source.inserted(at, f"\n\n{text}", source.margin(node))])
    for name, module in (("torch", "torch"), ("np", "numpy as np")):
        if f"{name}." in text and import_of(source, name) is None:
            edits.add(source, [source.imported(f"import {module}")])
