"""The lines that a loader's time goes to, and the edits that are tried on them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from ..advisors.code.batched.access import read_access
from ..advisors.code.batched.batch_values import NotArrays
from ..advisors.code.batched.getitems_code import getitems_function
from ..advisors.code.editable import Editable
from ..advisors.code.python_text import CannotEdit, first_line
from ..advisors.code.waste import leave_out, look_up, make_once, read_the_part
from ..advisors.schema.report_model import LoaderReport
from ..profiler.base.metadata import clean
from ..profiler.store.run.run import LoaderRun
from .edits import Edits
from .less_work import keep_open, make_smaller_first, map_memory, stack_samples, whole_array
from .project import CannotPatch, Project, Source

Edit = Callable[[Editable, ast.stmt], bool]
# What each does, as a title, and whether the batches are the same after it.
_EDITS: dict[Edit, tuple[str, bool]] = {
    leave_out: ("Leave out what training does not need", True),
    look_up: ("Look it up in an index, made once", True),
    map_memory: ("Read only the part that is used", True),
    make_once: ("Make once what is the same for every sample", True),
    keep_open: ("Open the file once in each process, not for each sample", True),
    read_the_part: ("Read only the part that is used", True),
    whole_array: ("Make the tensor of the whole row", True),
    stack_samples: ("Stack the arrays before making a tensor of them", True),
    make_smaller_first: ("Make pictures small before other steps", False),
}
_STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete),
    *(ast.With, ast.For, ast.If),
)
MAX_LINES = 40
SHOWN = 80


def change_lines(
    project: Project, edits: Edits, loader: LoaderReport, recorded: LoaderRun
) -> bool | None:
    """Edit the first line that an edit fits. Whether the batches stay the same; None where no edit
    fits any. Raises CannotPatch where the source of one is not to be had."""
    for source, number in hot_lines(project, loader, recorded):
        statement = statement_at(source, number)
        function = source.enclosing(statement, ast.FunctionDef) if statement is not None else None
        if statement is None or function is None:
            continue
        seen = {each.path: each for each in recorded.looks.fields}
        method = Editable(source, function, seen=seen)
        for edit, (said, same) in _EDITS.items():
            if fits(edit, method, statement):
                edits.add(source, method.pieces)
                edits.said = said
                return same
    return None


def fits(edit: Edit, method: Editable, statement: ast.stmt) -> bool:
    """Whether this edit fits this statement; the method's pieces are then those of it."""
    method.pieces = []
    try:
        return edit(method, statement)
    except CannotEdit:
        return False


def change_fetching(project: Project, edits: Edits, recorded: LoaderRun) -> bool:
    """Whole batches at once, where the data set's `__getitem__` only looks up rows."""
    for part in recorded.inspection.parts:
        if part.file is None or part.line is None or not part.getitem:
            continue
        source = project.source(part.file)
        functions = source.find(ast.FunctionDef)
        for node in (each for each in functions if first_line(each) == part.line):
            method = Editable(source, node)
            if method.self_name is None or method.method("__getitems__") is not None:
                continue
            try:
                text = getitems_function(read_access(part.getitem, part.attributes))
            except NotArrays:
                continue
            _add_getitems(method, text)
            edits.add(source, method.pieces)
            return True
    return False


def _add_getitems(method: Editable, text: str) -> None:
    file = method.file
    text = re.sub(r"\bsource\b", method.self_name or "", text).replace("    ", file.indent)
    text = text.replace("def getitems", "def __getitems__").rstrip()
    at = file.line_end(method.node.end_lineno or 0)
    method.pieces.append(file.inserted(at, f"\n\n{text}", file.margin(method.node)))
    for name, module in (("torch", "torch"), ("np", "numpy as np")):
        if f"{name}." in text:
            method.add_import(f"import {module}")


def hot_lines(
    project: Project, loader: LoaderReport, recorded: LoaderRun
) -> Iterator[tuple[Source, int]]:
    """What stacks have seen, the costliest first; then what the recorded source of the data set
    and of the collate function holds. Raises CannotPatch at the end if one is not to be had."""
    for finding in loader.findings:
        name, _, line = (finding.place or "").rpartition(":")
        if not line.isdigit() or finding.text is None:
            continue
        for source in project.sources():
            if PurePosixPath(source.path).name == name and _says(source, int(line), finding.text):
                yield source, int(line)
    inspection, refused = recorded.inspection, None
    for part in (*inspection.parts, inspection.collate):
        if part is None or part.file is None or part.line is None:
            continue
        try:
            source = project.source(part.file)
        except CannotPatch as error:
            refused = refused or error
            continue
        lines = part.getitem or part.call
        for number in range(part.line, part.line + min(len(lines), MAX_LINES)):
            yield source, number
    if refused is not None:
        raise refused


def _says(source: Source, line: int, text: str) -> bool:
    said = clean("".join(source.text.splitlines()[line - 1 : line]).strip(), SHOWN)
    return said == text or said[: SHOWN // 2] == text[: SHOWN // 2]


def statement_at(source: Source, line: int) -> ast.stmt | None:
    """The innermost statement that holds this line; of a block's head, the block."""
    nodes = source.find(*_STATEMENTS)
    held = [node for node in nodes if node.lineno <= line <= node.end_lineno]
    return held[-1] if held else None
