"""The lines that a loader's time goes to, and the edits that are tried on them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from ..advisors.code.editable import Editable
from ..advisors.code.python_text import CannotEdit, first_line
from ..advisors.code.waste import leave_out, look_up, make_once, read_the_part
from ..advisors.schema.report_model import LoaderReport
from ..profiler.base.metadata import clean
from ..profiler.store.run.run import LoaderRun
from .edits import Edits
from .handles import keep_open
from .less_work import make_smaller_first, map_memory, stack_samples, whole_array
from .project import CannotPatch, Project, Source
from .whole_batches import fetch_batches

# What each does, as a title, and whether the batches are the same after it.
_EDITS: dict[Callable[[Editable, ast.stmt], bool], tuple[str, bool]] = {
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
    refused: list[CannotPatch] = []
    for source, number in hot_lines(project, loader, recorded, refused):
        statement = statement_at(source, number)
        function = source.enclosing(statement, ast.FunctionDef) if statement is not None else None
        if statement is None or function is None:
            continue
        for edit, (said, same) in _EDITS.items():
            if edited_by(edit, edits, source, function, statement):
                edits.said = said
                return same
    if refused:
        raise refused[0]
    return None


def edited_by(
    edit: Callable[[Editable, ast.stmt], bool],
    edits: Edits,
    source: Source,
    function: ast.FunctionDef,
    statement: ast.stmt,
) -> bool:
    """Whether this edit fits this statement of a function; then it is among the edits."""
    method = Editable(source, function)
    try:
        found = edit(method, statement)
    except CannotEdit:
        return False
    if found:
        edits.add(source, method.pieces)
    return found


def change_fetching(project: Project, edits: Edits, recorded: LoaderRun) -> bool:
    """Whole batches at once, where the data set's `__getitem__` only looks up rows."""
    for part in recorded.inspection.parts:
        kinds = {
            each.name: each.kind for each in part.attributes if each.kind in ("tensor", "ndarray")
        }
        if part.file is None or part.line is None or not part.getitem:
            continue
        source = project.source(part.file)
        for node in source.find(ast.FunctionDef):
            if first_line(node) == part.line:
                method = Editable(source, node, kinds)
                if fetch_batches(method):
                    edits.add(source, method.pieces)
                    return True
    return False


def hot_lines(
    project: Project, loader: LoaderReport, recorded: LoaderRun, refused: list[CannotPatch]
) -> Iterator[tuple[Source, int]]:
    """What stacks have seen, the costliest first; then what the recorded source of the data set
    and of the collate function holds. `refused` takes why some are left out."""
    seen = set()
    for finding in loader.findings:
        name, _, line = (finding.place or "").rpartition(":")
        if not line.isdigit() or finding.text is None:
            continue
        for source in project.sources():
            if PurePosixPath(source.path).name == name and _says(source, int(line), finding.text):
                seen.add((source, int(line)))
                yield source, int(line)
    inspection = recorded.inspection
    for part in (*inspection.parts, inspection.collate):
        if part is None or part.file is None or part.line is None:
            continue
        try:
            source = project.source(part.file)
        except CannotPatch as error:
            refused.append(error)
            continue
        lines = part.getitem or part.call
        for number in range(part.line, part.line + min(len(lines), MAX_LINES)):
            if (source, number) not in seen:
                yield source, number


def _says(source: Source, line: int, text: str) -> bool:
    lines = source.text.splitlines()
    if not 0 < line <= len(lines):
        return False
    said = clean(lines[line - 1].strip(), SHOWN)
    return said == text or said[: SHOWN // 2] == text[: SHOWN // 2]


def statement_at(source: Source, line: int) -> ast.stmt | None:
    """The innermost statement that holds this line; of a block's head, the block."""
    found = None
    for node in source.find(ast.stmt):
        if isinstance(node, _STATEMENTS) and node.lineno <= line <= (node.end_lineno or 0):
            found = node
    return found
