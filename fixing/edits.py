"""Edits of a project's files, gathered and then made at once: what is not edited stays byte for
byte."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from .project import CannotPatch, Source

Edit = Callable[[Any], Any]


@dataclass(frozen=True)
class FileChange:
    """A file below the project's root before and after."""

    path: str
    before: bytes
    after: bytes


@dataclass
class Edits:
    """By source and node: what each becomes. An edit is given the node with inner edits made.
    `said`: what a change of lines does, as a title."""

    said: str | None = None
    _made: dict[Source, dict[cst.CSTNode, list[Edit]]] = field(default_factory=dict)

    def edit(self, source: Source, node: cst.CSTNode, edit: Edit) -> None:
        self._made.setdefault(source, {}).setdefault(node, []).append(edit)

    def replace(self, source: Source, node: cst.CSTNode, new: cst.CSTNode) -> None:
        self.edit(source, node, lambda _: new)

    def changes(self) -> tuple[FileChange, ...]:
        """Raises CannotPatch where the result is no Python."""
        found = []
        for source, edits in self._made.items():
            after = source.module.visit(_Applied(edits)).bytes
            if after == source.data:
                continue
            try:
                compile(after, source.path, "exec")
            except (SyntaxError, ValueError) as error:
                why = f"the change of {source.path} would not be valid Python"
                raise CannotPatch(why) from error
            found.append(FileChange(source.path, source.data, after))
        return tuple(found)


class _Applied(cst.CSTTransformer):
    def __init__(self, edits: dict[cst.CSTNode, list[Edit]]) -> None:
        super().__init__()
        self._edits = edits

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        found = super().on_leave(original_node, updated_node)
        for edit in self._edits.get(original_node, ()):
            found = edit(found)
        return found


def unified_diff(changes: tuple[FileChange, ...]) -> str:
    """For `patch -p1` in the project's root. Texts that are no UTF-8 keep their bytes (as
    surrogates)."""
    return "".join(line for change in changes for line in _diff(change))


def _diff(change: FileChange) -> list[str]:
    before, after = (
        data.decode("utf-8", "surrogateescape").split("\n")
        for data in (change.before, change.after)
    )
    lines = difflib.unified_diff(
        _lines(before), _lines(after), f"a/{change.path}", f"b/{change.path}"
    )
    return [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    ]


def _lines(parts: list[str]) -> list[str]:
    """Lines with their ends; the last has none, and is left out where it is empty."""
    *whole, last = parts
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]
