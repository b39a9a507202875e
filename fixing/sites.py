"""The call of a recorded line in the source."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from ..profiler.store.making import Line, Making
from .project import CannotPatch, Project, Source


@dataclass(frozen=True)
class Site:
    """A call in the source; `outer` are the lines that led to it."""

    source: Source
    call: ast.Call
    outer: tuple[Line, ...] = ()

    @property
    def callee(self) -> str:
        """'DataLoader', 'torch.utils.data.DataLoader', 'super().__init__'."""
        return self.source.shown(self.call.func)


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
    calls = [node for node in source.find(ast.Call) if node.lineno <= line.line <= node.end_lineno]
    if not calls:
        raise CannotPatch(f"{line.place} holds no call")

    def fit(node: ast.Call) -> tuple[bool, ...]:
        exact = (node.end_lineno, node.col_offset, node.end_col_offset) == (
            *(line.end_line, line.column, line.end_column),
        )
        # Without columns (before Python 3.11): the line is where the call begins, or its name ends.
        begins, loader = node.lineno == line.line, "oader" in source.shown(node.func)
        return begins and exact, begins and loader, loader, begins

    best = max(map(fit, calls))
    found = [node for node in calls if fit(node) == best]
    if len(found) > 1:
        raise CannotPatch(
            f"{line.place} holds several calls, and which made the loader is not known"
        )
    return Site(source, found[0], lines[1:])


def _made_before(site: Site) -> Site:
    """The call that made what `watch(…)` was given. Raises CannotPatch."""
    given = site.call.args[0] if site.call.args else None
    if isinstance(given, ast.Call):
        return replace(site, call=given)
    if isinstance(given, ast.Name):
        made = [
            node.value
            for node in site.source.find(ast.Assign)
            if isinstance(node.value, ast.Call) and given.id in map(ast.unparse, node.targets)
        ]
        if len(made) == 1:
            return Site(site.source, made[0])
    raise CannotPatch(
        "where the watched loader was made is not known: record it with `loaderscope run`"
    )
