"""How text reaches a stream: as wide, as coloured and in such characters as it can show."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from ..profiler.base.errors import UsageError


class ReaderGone(Exception):
    """Whoever read our output (head, less) has seen enough. (click would turn a BrokenPipeError into exit code 1.)"""


def need_terminal(verb: str, instead: str) -> None:
    """Raises UsageError where there is no screen to draw on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise UsageError(f"`{verb}` needs a terminal that can draw; {instead}")


def deliver(content: str | dict[str, bytes], output: Path | None) -> None:
    """Into the file or folder, or to standard output; HTML says it is UTF-8, so that is what a pipe gets."""
    if output is not None:
        from ..reports.formats import write_content

        write_content(content, output)
        return
    assert isinstance(content, str)
    if content.startswith("<!DOCTYPE html>") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    write(content, sys.stdout)


def fitted(render: Callable[..., str], *what: object, stream: TextIO | None = None) -> str:
    """`render(*what, width, color, unicode)`, as this stream (standard output) has them."""
    stream = stream or sys.stdout
    return render(*what, _width(stream), _color(stream), _unicode(stream))


def show(render: Callable[..., str], *what: object, stream: TextIO | None = None) -> None:
    """What `render` makes of that, on this stream (standard output)."""
    write(fitted(render, *what, stream=stream), stream or sys.stdout)


def _width(stream: TextIO) -> int:
    """COLUMNS if set, the terminal's width if there is one, else 80."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _color(stream: TextIO) -> bool:
    """https://no-color.org: set and not empty means none; FORCE_COLOR is its opposite; else only on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _unicode(stream: TextIO) -> bool:
    return "utf" in (stream.encoding or "").lower()


def write(text: str, stream: TextIO) -> None:
    """What the stream's encoding lacks is replaced. Raises ReaderGone."""
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        # Python flushes again at exit and would complain: what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise ReaderGone from error
