"""Where a recorded line stands in the source: its call, its function and its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodePosition

from ..profiler.store.making import Line, Making
from .project import CannotPatch, Project, Source

Node = TypeVar("Node", bound=cst.CSTNode)


@dataclass(frozen=True)
class Site:
    """A call in the source; `outer` are the lines that led to it."""

    source: Source
    call: cst.Call
    outer: tuple[Line, ...] = ()

    @property
    def function(self) -> cst.FunctionDef | None:
        return enclosing(self.source, self.call, cst.FunctionDef)

    @property
    def callee(self) -> str:
        """'DataLoader', 'torch.utils.data.DataLoader', 'super().__init__'."""
        return self.source.text(self.call.func)

    def with_call(self, call: cst.Call) -> Site:
        """Another call in the same place."""
        return Site(self.source, call, self.outer)


def enclosing(source: Source, node: cst.CSTNode, kind: type[Node]) -> Node | None:
    """The innermost function (or class, or `with`) around this node."""
    return next((each for each in source.parents(node) if isinstance(each, kind)), None)


def site_of(project: Project, making: Making) -> Site:
    """The user's own call that led to a loader. Raises CannotPatch."""
    if not making.lines:
        raise CannotPatch(
            "the run did not see where this loader was made: record it with `loaderscope run`"
        )
    site = site_at(project, making.lines)
    return _made_before(site) if making.watched else site


def site_at(project: Project, lines: tuple[Line, ...]) -> Site:
    """The call of the first of these lines, which the others led to. Raises CannotPatch."""
    line = lines[0]
    source = project.source(line.file)
    calls = [
        node
        for node in source.find(cst.Call)
        if source.at(node).start.line <= line.line <= source.at(node).end.line
    ]
    exact = [node for node in calls if _is_at(source, node, line)]
    # Without columns (before Python 3.11): the line is where the call begins, or its name ends.
    begins = [node for node in calls if source.at(node).start.line == line.line]
    loaders = [node for node in calls if "oader" in source.text(node.func)]
    for found in (exact, [each for each in begins if each in loaders], loaders, begins, calls):
        if len(found) == 1:
            return Site(source, found[0], lines[1:])
        if found:
            break
    if not calls:
        raise CannotPatch(f"{line.place} holds no call")
    raise CannotPatch(f"{line.place} holds several calls, and which made the loader is not known")


def _is_at(source: Source, node: cst.CSTNode, line: Line) -> bool:
    rows, at = source.data.split(b"\n"), source.at(node)

    def in_bytes(place: CodePosition) -> int:
        return len(rows[place.line - 1].decode("utf-8", "replace")[: place.column].encode())

    start, end = (at.start.line, in_bytes(at.start)), (at.end.line, in_bytes(at.end))
    return (start, end) == ((line.line, line.column), (line.end_line, line.end_column))


def _made_before(site: Site) -> Site:
    """The call that made what `watch(…)` was given. Raises CannotPatch."""
    given = site.call.args[0].value if site.call.args else None
    if isinstance(given, cst.Call):
        return site.with_call(given)
    if isinstance(given, cst.Name):
        made = [
            node.value
            for node in site.source.find(cst.Assign)
            if isinstance(node.value, cst.Call)
            and any(given.deep_equals(target.target) for target in node.targets)
        ]
        if len(made) == 1:
            return Site(site.source, made[0])
    raise CannotPatch(
        "where the watched loader was made is not known: record it with `loaderscope run`"
    )
