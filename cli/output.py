"""What verbs share: which run is meant, what is being done, and how text reaches a stream: as wide
and as coloured as it can show."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..profiler.base.errors import UsageError

if TYPE_CHECKING:
    from ..reports.document.blocks import Section
    from ..reports.formats import Content


PATH = click.Path(path_type=Path)


def output_option(help_: str = "Write to FILE.") -> Callable[[Any], Any]:
    """The option -o."""
    return click.option("-o", "--output", type=PATH, help=help_, metavar="FILE")


def format_option(*formats: str) -> Callable[[Any], Any]:
    """The option --format; text is the default."""
    choice = click.Choice(["text", *formats])
    return click.option("--format", "format_", type=choice, default="text", show_default=True)


def runs_option(
    help_: str = "Folder to record into.", is_folder: bool = False
) -> Callable[[Any], Any]:
    """The option --runs. A folder that takes no run keeps nothing from starting, unless it has to
    be one (`is_folder`)."""
    path = click.Path(path_type=Path, file_okay=not is_folder)
    return click.option("--runs", type=path, help=help_)


class ReaderGone(Exception):
    """Whoever read our output (head, less) has seen enough. (click would turn a BrokenPipeError
    into exit code 1.)"""


def need_terminal(verb: str, instead: str) -> None:
    """Raises UsageError where there is no screen to draw on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise UsageError(f"`{verb}` needs a terminal that can draw; {instead}")


def need_file(format_: str, output: Path | None, example: str) -> None:
    """Raises UsageError where such a format would go to a terminal."""
    from ..reports.formats import FILE_ONLY

    if output is None and format_ in FILE_ONLY and (format_ == "parquet" or sys.stdout.isatty()):
        raise UsageError(
            f"{format_} is not for a terminal: say where it goes, such as -o {example}"
        )


def show(
    what: Iterable[Section] | Callable[..., Content],
    *arguments: object,
    output: Path | None = None,
    stream: TextIO | None = None,
) -> None:
    """Sections, or what a function renders, into the file or folder, or as the stream (standard
    output) has room."""
    if not callable(what):
        from ..reports.text.draw import print_sections

        what, arguments = print_sections, (what,)
    deliver(fitted(what, *arguments, output=output, stream=stream), output, stream)


def fitted(
    render: Callable[..., Content],
    *what: object,
    output: Path | None = None,
    stream: TextIO | None = None,
) -> Content:
    """`render(*what, width, color)` for a file, or as the stream has room."""
    if output is not None:
        from ..reports.formats import FILE_WIDTH

        return render(*what, FILE_WIDTH, False)
    from rich.console import Console

    console = Console(file=stream or sys.stdout)
    color = console.color_system is not None and not console.no_color
    return render(*what, console.width, color)


def deliver(content: Content, output: Path | None = None, stream: TextIO | None = None) -> None:
    """Into the file or folder, or to the stream; HTML says it is UTF-8, so that is what a pipe
    gets."""
    if output is not None:
        from ..reports.formats import write_content

        write_content(content, output)
        return
    assert isinstance(content, str)
    stream = stream or sys.stdout
    if content.startswith("<!DOCTYPE html>") and isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8")
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(content.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        # Python flushes again at exit and would complain: what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise ReaderGone from error


@contextmanager
def working(said: str) -> Iterator[None]:
    """What is being done, on standard error if that is a terminal: some runs take long to read."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(said):
        yield


def live_or_named(run: str | None) -> Path:
    """The run of that name; without one, the newest that is live, else the newest. Raises
    RunNotFound."""
    from ..profiler.store.run.run_finder import find_run

    if run is not None:
        return find_run(run)
    from ..profiler.store.run.follow import newest_run
    from ..profiler.store.rundir import runs_directory

    return newest_run(runs_directory()) or find_run("latest")
