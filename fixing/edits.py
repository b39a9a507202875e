"""Edits of a project's files, gathered and then made at once: what is not edited stays byte for
byte."""

from __future__ import annotations

import ast
import difflib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..advisors.code.python_text import Piece, edited
from .call_text import added_arguments
from .project import CannotPatch, Source


@dataclass(frozen=True)
class FileChange:
    """A file below the project's root before and after."""

    path: str
    before: bytes
    after: bytes


@dataclass
class Edits:
    """Pieces of text by source, and arguments by call. `said`: what a change of lines does, as a
    title."""

    said: str | None = None
    _pieces: dict[Source, list[Piece]] = field(default_factory=dict)
    _arguments: dict[tuple[Source, ast.Call], dict[str, str]] = field(default_factory=dict)

    def add(self, source: Source, pieces: Iterable[Piece]) -> None:
        self._pieces.setdefault(source, []).extend(pieces)

    def replace(self, source: Source, node: ast.AST, new: str) -> None:
        """Put other code in the place of a node, the last that is said."""
        *span, _ = piece = source.replaced(node, new)
        others = [each for each in self._pieces.get(source, ()) if [*each[:2]] != span]
        self._pieces[source] = [*others, piece]

    def add_argument(self, source: Source, call: ast.Call, name: str, value: str) -> None:
        self._arguments.setdefault((source, call), {})[name] = value

    def changes(self) -> tuple[FileChange, ...]:
        """Raises CannotPatch where the result is no Python."""
        pieces = {source: list(each) for source, each in self._pieces.items()}
        for (source, call), arguments in self._arguments.items():
            pieces.setdefault(source, []).extend(added_arguments(source, call, arguments))
        found = []
        for source, each in pieces.items():
            after = edited(source.text, each).encode(source.encoding)
            if after == source.data:
                continue
            try:
                compile(after, source.path, "exec")
            except (SyntaxError, ValueError) as error:
                why = f"the change of {source.path} would not be valid Python"
                raise CannotPatch(why) from error
            found.append(FileChange(source.path, source.data, after))
        return tuple(found)


def unified_diff(changes: tuple[FileChange, ...]) -> str:
    """For `patch -p1` in the project's root. Texts that are no UTF-8 keep their bytes (as
    surrogates)."""
    return "".join(line for change in changes for line in _diff(change))


def _diff(change: FileChange) -> Iterator[str]:
    before, after = (
        [*io.StringIO(data.decode(errors="surrogateescape"))]
        for data in (change.before, change.after)
    )
    for line in difflib.unified_diff(before, after, f"a/{change.path}", f"b/{change.path}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
