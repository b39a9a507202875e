"""The lines that a loader's time goes to, and the edits that are tried on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import libcst as cst

from ..advisors.schema.report_model import LoaderReport
from ..profiler.base.metadata import clean
from ..profiler.store.run.run import LoaderRun
from .edits import Edits
from .hoisting import keep_open, make_once
from .method import Method
from .project import CannotPatch, Project, Source
from .waste import (
    fetch_batches,
    leave_out,
    look_up,
    make_smaller_first,
    map_memory,
    read_the_part,
    stack_samples,
    whole_array,
)

# Those after which the batches are the same come first. What each does, as a title.
_SAME = {
    leave_out: "Leave out what training does not need",
    look_up: "Look it up in an index, made once",
    map_memory: "Read only the part that is used",
    make_once: "Make once what is the same for every sample",
    keep_open: "Open the file once in each process, not for each sample",
    read_the_part: "Read only the part that is used",
    whole_array: "Make the tensor of the whole row",
    stack_samples: "Stack the arrays before making a tensor of them",
}
_OTHER = {make_smaller_first: "Make pictures small before other steps"}
MAX_LINES = 40
SHOWN = 80


def change_lines(
    project: Project, edits: Edits, loader: LoaderReport, recorded: LoaderRun
) -> bool | None:
    """Edit the first line that an edit fits. Whether the batches stay the same; None where no edit
    fits any. Raises CannotPatch where the source of one is not to be had."""
    refused: list[CannotPatch] = []
    for source, number in hot_lines(project, loader, recorded, refused):
        statement = _statement(source, number)
        method = Method.around(source, statement) if statement is not None else None
        if statement is None or method is None:
            continue
        for same, kinds in ((True, _SAME), (False, _OTHER)):
            for edit, said in kinds.items():
                if edit(edits, method, statement):
                    edits.said = said
                    return same
    if refused:
        raise refused[0]
    return None


def change_fetching(project: Project, edits: Edits, recorded: LoaderRun) -> bool:
    """Whole batches at once, where the data set's `__getitem__` only looks up rows."""
    for part in recorded.inspection.parts:
        kinds = {
            each.name: each.kind for each in part.attributes if each.kind in ("tensor", "ndarray")
        }
        if part.file is None or part.line is None or not part.getitem:
            continue
        source = project.source(part.file)
        for node in source.find(cst.FunctionDef):
            if source.at(node).start.line == part.line:
                method = Method.around(source, node.body)
                if method is not None and fetch_batches(edits, method, kinds):
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
    lines = source.data.decode("utf-8", "replace").splitlines()
    if not 0 < line <= len(lines):
        return False
    said = clean(lines[line - 1].strip(), SHOWN)
    return said == text or said[: SHOWN // 2] == text[: SHOWN // 2]


def _statement(source: Source, line: int) -> cst.CSTNode | None:
    """The innermost statement that holds this line; of a block's head, the block."""
    found: cst.CSTNode | None = None
    for node in source.find(cst.SimpleStatementLine, cst.With, cst.For, cst.If):
        at = source.at(node)
        inner = found is None or source.at(found).start.line <= at.start.line
        if inner and at.start.line <= line <= at.end.line:
            found = node
    return found
