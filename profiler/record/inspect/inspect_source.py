"""Reads a function's source and the names it uses, from its code object and file.

`linecache` and `inspect.getsource` are avoided: they cache what they read, which changes later
warnings and tracebacks. Code that exists only in linecache (of a notebook, a debugger) is read
there.
"""

from __future__ import annotations

import ast
import inspect
import io
import linecache
import math
import os
import re
import stat
import textwrap
import tokenize
import types
from itertools import islice, takewhile
from typing import Any

from ...base.torch_parts import codes
from ...guard.error_origin import forgiving
from ...guard.static_access import in_class, underlying
from ...guard.users_code import of_python, package_of

MAX_FILE_BYTES = 2 << 20
MAX_FILES = 8
MAX_LINES = 200
MAX_CHARACTERS = 8_000
MAX_LINE = 400
MAX_ALL_CHARACTERS = 64_000  # of one inspection: readers of a loader's JSON stop at 1 MiB
MAX_NAMES = 200
MAX_FUNCTIONS = 64
MAX_WRAPPED = 8


_SAYS_NOTHING = ("loader", "dataloader", "data_loader", "dl", "data", "iterable", "it")
# Packages whose code is well known: class and function names are enough.
_KNOWN = ("torch", "torchdata", "loaderscope", "typing", "abc", "collections", "functools")


def function_of(value: Any) -> types.FunctionType | None:
    """The Python function behind a function, method, partial or callable object, None if there is
    none. Decorators made with `functools.wraps` are unwrapped."""
    value = underlying(value)
    if type(value) is not types.FunctionType:
        value = underlying(in_class(type(value), "__call__"))
    found = None
    for _ in range(MAX_WRAPPED):
        if type(value) is not types.FunctionType:
            break
        found, value = value, underlying(vars(value).get("__wrapped__"))
    return found


def is_known(module: Any) -> bool:
    """Whether this module belongs to a well known package."""
    return type(module) is str and module.partition(".")[0] in _KNOWN


def names_used(functions: list[types.FunctionType], cls: type | None) -> list[str]:
    """Up to MAX_NAMES global and attribute names in these functions, and in the methods of `cls`
    and functions of the same module that they name, which are added to `functions`."""
    names: dict[str, None] = {}
    for function in functions:  # grows meanwhile
        for name in (name for code in codes(function.__code__) for name in code.co_names):
            if len(names) >= MAX_NAMES:
                return list(names)
            names[name] = None
            other = _named(name, function, cls)
            if other and other not in functions and len(functions) < MAX_FUNCTIONS:
                functions.append(other)
    return list(names)


def _named(name: str, function: types.FunctionType, cls: type | None) -> types.FunctionType | None:
    value = in_class(cls, name) if cls is not None else None
    if value is None and type(function.__globals__) is dict:
        value = function.__globals__.get(name)
    held = underlying(value.fget if type(value) is property else value)
    own = type(held) is types.FunctionType and held.__module__ == function.__module__
    return held if own else None


class Sources:
    """Reads source for one inspection, each file once and within limits."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}
        self._left = MAX_ALL_CHARACTERS

    def lines(self, function: types.FunctionType) -> tuple[str, ...]:
        """The function's source, dedented and within limits; () if unavailable or not the
        user's."""
        code = function.__code__
        name = code.co_filename
        if is_known(function.__module__) or package_of(name) or of_python(name):
            return ()
        if name not in self._files:
            self._files[name] = _lines(name) if len(self._files) < MAX_FILES else []
        text = source_of(function, self._files[name])[: min(MAX_CHARACTERS, self._left)]
        self._left -= len(text)
        return tuple(line[:MAX_LINE] for line in text.split("\n")) if text else ()


def source_of(function: types.FunctionType, lines: list[str] | None = None) -> str:
    """The function's source, dedented; "" if unavailable. `lines` are those of its file."""
    code = function.__code__
    lines = _lines(code.co_filename) if lines is None else lines
    block = _block(lines[code.co_firstlineno - 1 : code.co_firstlineno - 1 + MAX_LINES], code)
    return textwrap.dedent("".join(block)).rstrip()


def loop_at(name: str, line: int) -> tuple[str, ...]:
    """The source of the `for` statement at this line of a file, dedented; () where it is another
    statement, unavailable or longer than MAX_LINES."""
    lines = _lines(name)[line - 1 :]
    if not lines or not lines[0].lstrip().startswith(("for ", "async for ")):
        return ()
    margin = _margin(lines[0])
    inside = takewhile(lambda line: not line.strip() or _margin(line) > margin, lines[1:])
    kept = [lines[0], *islice(inside, MAX_LINES)]
    if len(kept) > MAX_LINES or sum(map(len, kept)) > MAX_CHARACTERS:
        return ()
    return tuple(textwrap.dedent("".join(kept)).rstrip().split("\n"))


def iterated(loop: tuple[str, ...]) -> str | None:
    """The name that this loop iterates over, by itself or through a call such as `tqdm`; None for
    another expression, and for a name that says no more than that it is a loader."""
    head = sum(1 for _ in takewhile(lambda line: not line.rstrip().endswith(":"), loop)) + 1
    text = "\n".join(loop[:head]) + (" pass" if head <= len(loop) else "")
    if "\\" in text:  # the parser would warn of an escape that it does not know
        return None
    statement: Any = ast.parse(text).body[0]
    over = statement.iter
    if type(over) is ast.Call and len(over.args) == 1:
        over = over.args[0]
    name = getattr(over, "id", None) or getattr(over, "attr", None)
    return name if name and name.lower() not in _SAYS_NOTHING else None


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def cached(name: str) -> list[str]:
    """The lines of code that is in no file, such as a notebook's."""
    entry: Any = linecache.cache.get(name)
    return entry[2] if type(entry) is tuple and len(entry) == 4 and type(entry[2]) is list else []


def _lines(name: str) -> list[str]:
    text = (content(name) or b"").decode("utf-8", "replace")
    return io.StringIO(text, newline=None).readlines() or cached(name)


def content(name: str, latest: float = math.inf) -> bytes | None:
    """The bytes of a source file, None if it is large, unreadable, or was written after `latest`
    (UNIX time)."""
    with forgiving(OSError, ValueError):
        status = os.stat(name)
        small = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES
        if small and status.st_mtime <= latest:
            with open(name, "rb") as file:
                return file.read(MAX_FILE_BYTES)
    return None


def _block(lines: list[str], code: types.CodeType) -> list[str]:
    """The lines of the function that starts at the first line, [] if it is another function."""
    try:
        block = inspect.getblock(lines)
    except (SyntaxError, tokenize.TokenError):  # cut off within brackets or a string
        block = lines[:1] if code.co_name == "<lambda>" else lines
    text = "".join(block)
    begins = "lambda" if code.co_name == "<lambda>" else rf"\bdef\s+{re.escape(code.co_name)}\b"
    # The file may have changed, or another one may have its name in the current directory.
    return block if re.search(begins, text) else []
