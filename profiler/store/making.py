"""Where a loader was made, and the source files that the process ran: what a change of the user's
code is built on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Meta, Struct

from ..base.metadata import clean
from ..base.tolerant import Count, read_or_empty

MAX_LINES = 8
MAX_FILES = 512
SOURCES = "sources.json"


class Line(Struct, frozen=True):
    """A line of the user's own that ran a call. `end_line`, `column` and `end_column` (in bytes of
    UTF-8, from 0) delimit the call, from Python 3.11 on. `cell` is a notebook cell's number."""

    file: str = ""
    line: Count = 0
    function: str = "<module>"
    end_line: Count | None = None
    column: Count | None = None
    end_column: Count | None = None
    cell: Count | None = None

    @property
    def place(self) -> str:
        """'data.py:41', safe to print."""
        if self.cell is not None:
            return f"cell {self.cell}, line {self.line}"
        name = PurePosixPath(self.file.replace("\\", "/")).name
        return f"{clean(name, 80) or '?'}:{self.line}"


class Making(Struct, frozen=True):
    """`lines`: those that led to the loader, the innermost first. `through`: the installed package
    between the innermost and the loader, `call` the function of it that was called ("create_loader"
    of timm). `again`: the package made it out of the user's loader, of which the lines are.
    `watched`: the lines are of the call of `watch`, as the loader was made before."""

    lines: Annotated[tuple[Line, ...], Meta(max_length=MAX_LINES)] = ()
    through: str | None = None
    call: str | None = None
    again: bool = False
    watched: bool = False

    @property
    def place(self) -> str | None:
        """'data.py:41'; None where it was not seen being made."""
        return self.lines[0].place if self.lines and not self.watched else None


class Sources(Struct, frozen=True):
    """SHA-256 of the user's source files that the process had imported, by absolute path. `cwd`:
    its working directory when recording began. `module`: what `python -m` ran, "" for a script."""

    format: int | None = None
    cwd: str = ""
    module: str = ""
    files: Annotated[Mapping[str, str], Meta(max_length=MAX_FILES)] = {}


def read_sources(process: Path) -> Sources:
    """The source files of this process's folder; empty where they were not recorded."""
    return read_or_empty(Sources, process / SOURCES)
