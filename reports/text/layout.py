"""Pieces that every part of the text report is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...profiler.base.metadata import clean

INDENT = 2


def heading(text: str) -> Text:
    return Text(text, style="bold underline")


def indented(text: str | Text, style: str = "", by: int = INDENT) -> Padding:
    """A paragraph, wrapped, its every line indented."""
    return Padding(text if isinstance(text, Text) else Text(text, style=style), (0, 0, 0, by))


def one_line(
    text: str | Text, width: int, style: str = "", by: int = INDENT, tail: Text | None = None
) -> Text:
    """A line of at most `width` columns; `text` ends in … where it has no room beside its `tail`,
    which is kept."""
    found = Text(text, style=style) if isinstance(text, str) else text.copy()
    room = max(10, width - by - (tail.cell_len if tail is not None else 0))
    found.truncate(room, overflow="ellipsis")
    line = Text.assemble(" " * by, found, tail or "")
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line


def hanging(marker: str, text: Text, by: int = INDENT) -> Table:
    """A paragraph beside its marker ("1.", "·"), all its lines beginning at one column."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=by + cell_len(marker), justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text(marker), text)
    return table


def bullets(lines: Iterable[str]) -> Iterator[RenderableType]:
    for line in lines:
        yield hanging("·", Text(clean(line)))


def labelled(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Sentences beside their labels, all beginning at one column."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, sentence in rows:
        table.add_row(Text(" " * INDENT + label), Text(sentence))
    return Group(table)
