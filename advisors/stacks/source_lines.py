"""The text of a line of the user's code, from the source recorded with the run or from the file.

In a stack, a C function is the Python line that calls it, so the line's text names it. A file is
read only on the machine that recorded the run, and only if it has not changed since the process
began.
"""

import ast
import linecache
import stat
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...profiler.base.host import host_name
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import cell_of
from ...profiler.store.inspection import Attribute, Inspection, Part
from ...profiler.store.run.run import LoaderRun, ProcessRun

MAX_FILE_BYTES = 2 << 20
MAX_LINE = 200
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_SUFFIXES = (".py", ".pyw")
_CONTAINERS = ("list", "dict", "deque")


Lines = tuple[str, ...]
Function = tuple[int, Lines]  # the number of its first line, its lines


class SourceLines:
    """Lines by (file, number)."""

    def __init__(self, process: ProcessRun, loader: LoaderRun) -> None:
        seen = loader.inspection
        # The place is that of the first of these that the class has.
        self._recorded: list[tuple[str, Function]] = [
            (part.file, (part.line, part.getitem or part.getitems or part.iter or part.call))
            for part in (*seen.parts, *Inspection(seen.collate).parts)
            if part.file and part.line
        ]
        self._began_ns = process.unix_ns if process.host == host_name() else None

    def text(self, file: str | None, line: int | None) -> str | None:
        """The line without indentation, safe to print; None if it is not available."""
        if not file or not line or line < 1:
            return None
        first, lines = self._recorded_around(file, line) or (1, self._lines(file))
        if not lines and self._began_ns and cell_of(file) is not None:
            lines = tuple(linecache.getlines(file))
        text = "".join(lines[line - first : line - first + 1]).strip()
        return clean(text, MAX_LINE) or None

    def function(self, file: str, line: int) -> Function | None:
        """The function around a line; None if it is not available."""
        return self._recorded_around(file, line) or _function_around(self._lines(file), line)

    def part(self, file: str | None, line: int | None) -> Part | None:
        """The function around a line of the user's, with the other methods of its class, as
        helpers of a part that is nothing else, and attributes of which `__init__` tells the kind;
        None if it is not available."""
        lines = self._lines(file) if file and line else ()
        found = _function_around(lines, line or 0)
        if found is None:
            return None
        name, others, attributes = _class_around(lines, line or 0)
        texts = (textwrap.dedent("\n".join(each)) for each in (found[1], *others))
        sources = dict.fromkeys(tuple(each.split("\n")) for each in texts)
        return Part(
            name=name, file=file, line=found[0], helpers=tuple(sources), attributes=attributes
        )

    def _recorded_around(self, file: str, line: int) -> Function | None:
        around = (
            found
            for of, found in self._recorded
            if of == file and found[0] <= line < found[0] + len(found[1])
        )
        return next(around, None)

    def _lines(self, file: str) -> Lines:
        """None of a file that may be another than the process had."""
        if not self._began_ns or not file.endswith(_SUFFIXES) or not Path(file).is_absolute():
            return ()
        try:
            status = Path(file).stat()
            small = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES
            if not small or status.st_mtime_ns > self._began_ns:
                return ()
            return _lines(file, status.st_mtime_ns, status.st_size)
        except (OSError, ValueError):
            return ()


def _around(lines: Lines, line: int, *kinds: type[ast.stmt]) -> list[Any]:
    """The definitions of these kinds that hold this line."""
    return [
        node
        for node in _definitions(lines)
        if isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or 0)
    ]


def _function_around(lines: Lines, line: int) -> Function | None:
    """The innermost function that holds this line."""
    around = _around(lines, line, *_FUNCTIONS)
    return _source(lines, max(around, key=lambda node: node.lineno)) if around else None


def _class_around(lines: Lines, line: int) -> tuple[str, list[Lines], tuple[Attribute, ...]]:
    """The name of the class that holds this line, its methods besides what makes an object, and the
    attributes that this makes."""
    for node in _around(lines, line, ast.ClassDef):
        methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
        own = [_source(lines, e)[1] for e in methods if e.name != "__init__"]
        init = [each for each in methods if each.name == "__init__"]
        return node.name, own, tuple(made for each in init for made in _made(each))
    return "", [], ()


def _made(init: ast.AST) -> Iterator[Attribute]:
    """The lists, dicts and deques that it makes as attributes."""
    for node in ast.walk(init):
        match node:
            case ast.Assign([ast.Attribute(ast.Name("self"), name)], value) | ast.AnnAssign(
                ast.Attribute(ast.Name("self"), name), _, value
            ):
                match value:
                    case ast.List() | ast.ListComp():
                        kind = "list"
                    case ast.Dict() | ast.DictComp():
                        kind = "dict"
                    case ast.Call(ast.Name(kind) | ast.Attribute(_, kind)):
                        pass
                    case _:
                        continue
                if kind in _CONTAINERS:
                    yield Attribute(name, kind, kind)


@lru_cache(maxsize=8)
def _definitions(lines: Lines) -> list[Any]:
    """The functions and classes in these lines. Each line of a stack asks for those around it."""
    return [node for node in ast.walk(_tree(lines)) if isinstance(node, _DEFINITIONS)]


def _source(lines: Lines, found: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    return first, lines[first - 1 : found.end_lineno]


@lru_cache(maxsize=8)
def _tree(lines: Lines) -> ast.AST:
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@lru_cache(maxsize=32)
def _lines(file: str, mtime_ns: int, size: int) -> Lines:
    """The file's lines. Time and size are part of the cache key, so a changed file is read
    again."""
    with Path(file).open(encoding="utf-8", errors="replace") as opened:
        return tuple(opened.read(MAX_FILE_BYTES).split("\n"))
