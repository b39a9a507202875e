"""Edits of a project's files, gathered and then made at once: what is not edited stays byte for
byte. Arguments are written into a call as its others are: spaced and broken."""

import ast
import difflib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..advisors.code.python_text import Piece, PythonText, edited
from .project import CannotPatch, Source


@dataclass(frozen=True)
class FileChange:
    """A file below the project's root before and after."""

    path: str
    before: bytes
    after: bytes


@dataclass
class Edits:
    """Pieces of text by source, and arguments by call."""

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
        """Asked for once, at the end. Raises CannotPatch where the result is no Python."""
        for (source, call), arguments in self._arguments.items():
            self.add(source, added_arguments(source, call, arguments))
        found = []
        for source, each in self._pieces.items():
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


Argument = ast.expr | ast.keyword


def arguments_of(call: ast.Call) -> list[Argument]:
    """All that stands between the parentheses, in its order."""
    return sorted([*call.args, *call.keywords], key=lambda each: (each.lineno, each.col_offset))


def added_arguments(text: PythonText, call: ast.Call, new: Mapping[str, str]) -> list[Piece]:
    """More keywords at the end of a call that has no `**`."""
    given, close = arguments_of(call), text.span(call)[1] - 1
    equal = re.findall(r"^\w+(\s*=\s*)", text.of(call.keywords[-1])) if call.keywords else ["="]
    written = [f"{name}{equal[0]}{value}" for name, value in new.items()]
    if not given:
        return [(close, close, ", ".join(written))]
    between = _between(text, call, given)
    end = _end(text, given[-1], close)
    return [(end, end, "".join(f"{between}{each}" for each in written))]


def without_argument(text: PythonText, call: ast.Call, argument: Argument) -> Piece:
    """The call without this argument."""
    given = arguments_of(call)
    at = given.index(argument)
    end = _end(text, argument, text.span(call)[1] - 1)
    if at:
        return _end(text, given[at - 1], text.span(argument)[0]), end, ""
    following = text.span(given[1])[0] if len(given) > 1 else end
    return text.span(argument)[0], following, ""


def _end(text: PythonText, node: ast.AST, limit: int) -> int:
    """Where an argument ends, with the parentheses around it."""
    end = text.span(node)[1]
    return end + re.match(r"(?:(?:\s|#.*)*\))*", text.text[end:limit]).end()  # type: ignore[union-attr]


def _between(text: PythonText, call: ast.Call, given: list[Argument]) -> str:
    """What separates two arguments of this call: a comma, and a space or a new line."""
    *_, left, right = call.func, *given[:2]
    after, start = "," if len(given) > 1 else "(", text.span(right)[0]
    gap = text.text[_end(text, left, start) : start].partition(after)[2]
    if "\n" in gap:
        return f",{text.newline}{gap.rpartition(chr(10))[2]}"
    return f",{gap}" if after == "," and not gap.strip() else ", "
