"""The text of a line of the user's code, from the source recorded with the run or from the file.

In a stack, a C function is the Python line that calls it, so the line's text names it. A file is
read only on the machine that recorded the run, and only if it has not changed since the process
began.
"""

from __future__ import annotations

import ast
import linecache
import stat
from functools import lru_cache
from pathlib import Path

from ...profiler.base.host import host_name
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import cell_of
from ...profiler.store.inspection import Inspection
from ...profiler.store.run.run import LoaderRun, ProcessRun

MAX_FILE_BYTES = 2 << 20
MAX_LINE = 200
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
        usable = self._same_machine and self._began_ns is not None
        lines = _lines_of_file(file, self._began_ns) if usable and self._began_ns else ()
        return _function_around(lines, line)


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
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return None
    found = max(around, key=lambda node: node.lineno)
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    return first, lines[first - 1 : found.end_lineno]


@lru_cache(maxsize=32)
def _lines(file: str, mtime_ns: int, size: int) -> tuple[str, ...]:
    """The file's lines. Time and size are part of the cache key, so a changed file is read
    again."""
    with Path(file).open(encoding="utf-8", errors="replace") as opened:
        return tuple(opened.read(MAX_FILE_BYTES).split("\n"))
