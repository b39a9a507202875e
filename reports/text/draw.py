"""Draws blocks for a terminal: as wide as it is, code whole, and nothing in a text is markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from ...profiler.base.metadata import clean
from ..document.blocks import (
    Bar,
    Block,
    Bullets,
    Card,
    Cell,
    Code,
    Column,
    Pairs,
    Section,
    Sentence,
    Styled,
    Table,
)
from ..words.units import bar
from .terminal import fitting_width, printed

INDENT, BODY = 2, 5  # where text begins, and where that of a card does, after "  1. "
LONG_BARS_FROM = 110
MAX_CODE_LINE = 100_000
STYLES = {
    "lead": "bold",
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "warning": "bold red",
    "bar": "cyan",
    "code": "cyan",
    "own": "yellow",
    "correctness": "bold red",
    "safety": "bold yellow",
    "input-bound": "bold red",
    "balanced": "bold yellow",
    "compute-bound": "bold green",
    "too-short": "bold cyan",
}
GAP = Text("")

Drawn = Iterator[RenderableType]


def print_sections(
    sections: Iterable[Section],
    width: int = 80,
    color: bool = False,
    unicode: bool = True,
    gaps: bool = True,
) -> str:
    """The sections as text of at most `width` columns, with ANSI colours if `color`, in ASCII
    unless `unicode`. Only lines of code to paste may be longer.

    `gaps`: with an empty line after each part.
    """
    width = fitting_width(width)
    return printed(_without_repeats(_sections(sections, width, gaps), gaps), width, color, unicode)


def _without_repeats(parts: Drawn, gaps: bool) -> Drawn:
    last: RenderableType = GAP
    for part in parts:
        if part is not GAP or (gaps and last is not GAP):
            yield part
        last = part


def _sections(sections: Iterable[Section], width: int, gaps: bool) -> Drawn:
    for each in sections:
        if each.empty:
            continue
        if each.verdict:
            style = STYLES[each.verdict]
            if gaps:
                yield Rule(style="dim", characters="─")
            yield Text.assemble(
                ("● ", style), (each.verdict, style), "  ", (clean(each.title), "bold")
            )
            yield GAP
        elif each.title:
            yield _heading(each.title)
        for part in each.parts:
            if part.title and part.blocks:
                yield _heading(part.title)
            yield from _blocks(part.blocks, width, INDENT if each.title else 0)
            yield GAP


def _heading(text: str) -> Text:
    return Text(clean(text), style="bold underline")


def _blocks(blocks: Iterable[Block], width: int, by: int) -> Drawn:
    for block in blocks:
        match block:
            case Sentence(text, style, fit):
                yield from _paragraph(Text(clean(text), STYLES.get(style, style)), width, by, fit)
            case Bullets(lines):
                yield from (_hanging("·", Text(clean(line)), by) for line in lines)
            case Pairs(rows, _, True):
                inline = " · ".join(f"{clean(name, 60)} {clean(said, 120)}" for name, said in rows)
                yield from _paragraph(Text(inline, "dim"), width, by)
            case Pairs(rows):
                yield Padding(_pairs(rows), (0, 0, 0, by))
            case Code(code):
                yield from (GAP, _code(code, by), GAP)
            case Table():
                yield Padding(_table(block, width - by), (0, 0, 0, by))
            case Card():
                yield from _card(block, width, by)


def _paragraph(text: Text, width: int, by: int, fit: bool = False, tail: str | Text = "") -> Drawn:
    """Text with all its lines indented; with `fit` as one line, of which the tail is never cut."""
    if not fit:
        yield Padding(text, (0, 0, 0, by))
        return
    text.truncate(max(10, width - by - cell_len(str(tail))), overflow="ellipsis")
    line = Text.assemble(" " * by, text, tail)
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    yield line


def _hanging(marker: str, text: Text, by: int) -> Grid:
    """A paragraph beside its marker, all its lines beginning at one column."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(width=by + cell_len(marker), justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(marker), text)
    return grid


def _pairs(rows: Sequence[tuple[str, str]]) -> Grid:
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, said in rows:
        grid.add_row(Text(clean(name, 30)), Text(clean(said)))
    return grid


def _code(code: str, by: int) -> Group:
    """One line of it a line, whatever the width. (In a group, since rich joins texts printed
    alone.)"""
    lines = (clean(line, MAX_CODE_LINE) for line in code.split("\n"))
    return Group(
        *(Text(" " * by + line, style="cyan", no_wrap=True, overflow="ignore") for line in lines)
    )


def _card(card: Card, width: int, by: int) -> Drawn:
    title = Text()
    if card.topic in STYLES:
        title.append(f"{card.topic}: ", STYLES[card.topic])
    title.append(clean(card.title), style="dim" if card.left_out else "bold")
    tail = Text()
    tail.append(f"  {clean(card.effect)}" if card.effect else "", style="green")
    tail.append(f"  {clean(card.ending)}" if card.ending else "")
    marker = f"{card.number}." if card.number is not None else " ·"
    if card.fit:
        yield from _paragraph(Text.assemble(f"{marker} ", title), width, by, True, tail)
    else:
        rule = Text(f"  [{clean(card.rule, 40)}]", "dim")
        yield _hanging(marker, Text.assemble(title, tail, rule), by)
    yield from _blocks(card.body, width, by + BODY - INDENT)
    if card.number is not None:
        yield GAP


def _table(table: Table, width: int) -> RenderableType:
    """A grid for each group of rows, all with columns of one width."""
    shown = [
        at for at, each in enumerate(table.columns) if each.least <= width + INDENT <= each.most
    ]
    columns = [table.columns[at] for at in shown]
    length = 16 if width >= LONG_BARS_FROM else 8
    groups: list[tuple[str, list[list[Text]]]] = [("", [])]
    for row in table.rows:
        if isinstance(row, str):
            groups.append((row, []))
        else:
            groups[-1][1].append(
                [_cell(row[at], columns[n].kind, length) for n, at in enumerate(shown)]
            )
    heads = [Text(each.head, "dim") for each in columns]
    cells = [heads, *(row for _, rows in groups for row in rows)]
    widths = [max(each.cell_len for each in column) for column in zip(*cells, strict=True)]
    least = sum(w if each.whole else min(w, 40) for w, each in zip(widths, columns, strict=True))
    gap = 2 if least + 2 * (len(columns) - 1) <= width else 1
    made: list[RenderableType] = []
    if any(each.head for each in columns):
        groups.insert(0, ("", [heads]))
    for title, rows in groups:
        made += [Text(clean(title), "italic dim")] if title else []
        made += [_grid(columns, widths, gap, rows)] if rows else []
    return Group(*made)


def _grid(
    columns: Sequence[Column], widths: Sequence[int], gap: int, rows: Iterable[Iterable[Text]]
) -> Grid:
    grid = Grid.grid(padding=(0, gap, 0, 0))
    for column, size in zip(columns, widths, strict=True):
        grid.add_column(
            justify="right" if column.kind == "number" else "left",
            no_wrap=column.whole,
            min_width=size if column.whole else None,
            overflow="fold",
            style="dim" if column.kind in ("dim", "gloss") else "",
        )
    for row in rows:
        grid.add_row(*row)
    return grid


def _cell(cell: Cell, kind: str, length: int) -> Text:
    if isinstance(cell, Bar):
        return Text(bar(cell.share, length), STYLES[cell.style])
    text, style = cell if isinstance(cell, Styled) else (cell, "")
    shown = (clean(text), STYLES.get(style, style))
    cut = kind in ("line", "gloss")
    return Text.assemble(shown, no_wrap=cut, overflow="ellipsis" if cut else "fold")
