"""The text of a line of the user's code, from the source recorded with the run or from the file.

In a stack, a C function is the Python line that calls it, so the line's text names it. A file is
read only on the machine that recorded the run, and only if it has not changed since the process
began.
"""

from __future__ import annotations

import ast
import linecache
import stat
import textwrap
from functools import lru_cache
from pathlib import Path

from ...profiler.base.host import host_name
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import cell_of
from ...profiler.store.inspection import Inspection, Part
from ...profiler.store.run.run import LoaderRun, ProcessRun

MAX_FILE_BYTES = 2 << 20
MAX_LINE = 200
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SUFFIXES = (".py", ".pyw")


class SourceLines:
    """Lines by (file, number). `here` names the machine that reads."""

    def __init__(self, process: ProcessRun, loader: LoaderRun, here: str | None = None) -> None:
        self._recorded: dict[tuple[str, int], str] = {}
        self._functions: list[tuple[str, int, tuple[str, ...]]] = []
        seen = loader.inspection
        for part in (*seen.parts, *Inspection(seen.collate).parts):
            # The place is that of the first of these that the class has.
            source = part.getitem or part.getitems or part.iter or part.call
            if part.file and part.line:
                self._functions.append((part.file, part.line, source))
                self._recorded.update(
                    {(part.file, part.line + n): text for n, text in enumerate(source)}
                )
        self._same_machine = process.host is not None and process.host == (here or host_name())
        self._began_ns = process.unix_ns

    def text(self, file: str | None, line: int | None) -> str | None:
        """The line without indentation, safe to print; None if it is not available."""
        if not file or not line or line < 1:
            return None
        found = self._recorded.get((file, line))
        if found is None and self._same_machine and self._began_ns is not None:
            found = _line_of_file(file, line, self._began_ns)
        text = clean(found.strip(), MAX_LINE) if found is not None else ""
        return text or None

    def function(self, file: str, line: int) -> tuple[int, tuple[str, ...]] | None:
        """The function around a line: its first line's number, and its lines as they are; None if
        it is not available."""
        for of, first, lines in self._functions:
            if of == file and first <= line < first + len(lines):
                return first, lines
        return _function_around(self._lines(file), line)

    def part(self, file: str | None, line: int | None) -> Part | None:
        """The function around a line of the user's, with the other methods of its class, as
        helpers of a part that is nothing else; None if it is not available."""
        if not file or not line:
            return None
        lines = self._lines(file)
        found = _function_around(lines, line)
        if found is None:
            return None
        name, others = _class_around(lines, line)
        sources = dict.fromkeys((_dedented(found[1]), *map(_dedented, others)))
        return Part(name=name, file=file, line=found[0], helpers=tuple(sources))

    def _lines(self, file: str) -> tuple[str, ...]:
        usable = self._same_machine and self._began_ns is not None
        return _lines_of_file(file, self._began_ns) if usable and self._began_ns else ()


def _dedented(source: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(textwrap.dedent("\n".join(source)).split("\n"))


def _line_of_file(file: str, line: int, began_ns: int) -> str | None:
    if cell_of(file) is not None:
        return linecache.getline(file, line) or None
    lines = _lines_of_file(file, began_ns)
    return lines[line - 1] if line <= len(lines) else None


def _lines_of_file(file: str, began_ns: int) -> tuple[str, ...]:
    """None of a file that may be another than the process had."""
    if not file.endswith(_SUFFIXES) or not Path(file).is_absolute():
        return ()
    try:
        status = Path(file).stat()
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_size > MAX_FILE_BYTES
            or status.st_mtime_ns > began_ns
        ):
            return ()
        return _lines(file, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        return ()


def _function_around(lines: tuple[str, ...], line: int) -> tuple[int, tuple[str, ...]] | None:
    """The innermost function that holds this line."""
    around = [
        node
        for node in ast.walk(_tree(lines))
        if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return None
    return _source(lines, max(around, key=lambda node: node.lineno))


def _class_around(lines: tuple[str, ...], line: int) -> tuple[str, list[tuple[str, ...]]]:
    """The name of the class that holds this line, and its methods besides what makes an object."""
    for node in ast.walk(_tree(lines)):
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
            methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
            made = (each for each in methods if each.name != "__init__")
            return node.name, [_source(lines, each)[1] for each in made]
    return "", []


def _source(
    lines: tuple[str, ...], found: ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[int, tuple[str, ...]]:
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    return first, lines[first - 1 : found.end_lineno]


@lru_cache(maxsize=8)
def _tree(lines: tuple[str, ...]) -> ast.AST:
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@lru_cache(maxsize=32)
def _lines(file: str, mtime_ns: int, size: int) -> tuple[str, ...]:
    """The file's lines. Time and size are part of the cache key, so a changed file is read
    again."""
    with Path(file).open(encoding="utf-8", errors="replace") as opened:
        return tuple(opened.read(MAX_FILE_BYTES).split("\n"))
