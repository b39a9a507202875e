"""Draws blocks for a terminal: as wide as it is, code whole, and nothing in a text is markup."""

import io
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
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
    Part,
    Section,
    Sentence,
    Styled,
    Table,
)
from ..words.units import bar

INDENT, BODY = 2, 5  # where text begins, and where that of a card does, after "  1. "
LONG_BARS_FROM = 126
MAX_CODE_LINE = 100_000
STYLES = {
    "lead": "bold",
    "strong": "bold",
    "dim": "dim",
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
MIN_WIDTH, MAX_WIDTH = 40, 140
PAIR = (Column("", "name"), Column(""))
GAP = Text("")

Drawn = Iterator[RenderableType]


def print_sections(
    sections: Iterable[Section],
    width: int = 80,
    color: bool = False,
    gaps: bool = True,
) -> str:
    """The sections as text of at most `width` columns, with ANSI colours if `color`. Only
    lines of code to paste may be longer.

    `gaps`: with an empty line after each part.
    """
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    output = console(width, color)
    with output.capture() as capture:
        for part in _without_repeats(_sections(sections, width, gaps), gaps):
            # Code is shown whole, however long its lines; all else wraps.
            output.print(part, crop=False)
    lines = (line.rstrip() for line in capture.get().splitlines())
    return "\n".join(lines).rstrip("\n") + "\n"


def console(width: int, color: bool = True) -> Console:
    """Lays texts out in `width` columns. None of them is read as markup."""
    return Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,  # it would show there what is to be returned
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )


def drawn_parts(parts: Iterable[Part], width: int, gaps: bool) -> Drawn:
    """The parts below each other, each below its title."""
    return _without_repeats(_parts(parts, width, 0), gaps)


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
            if gaps:
                yield Rule(style="dim", characters="─")
            verdict = Text(f"● {each.verdict}  ", STYLES[each.verdict])
            yield Text.assemble(verdict, (clean(each.title), "bold"))
            yield GAP
        elif each.title:
            yield _heading(each.title)
        yield from _parts(each.parts, width, INDENT if each.title else 0)


def _parts(parts: Iterable[Part], width: int, by: int) -> Drawn:
    for part in parts:
        if part.blocks:
            if part.title:
                yield _heading(part.title)
            yield from _blocks(part.blocks, width, by)
            yield GAP


def _heading(title: str) -> Text:
    return Text(clean(title), "bold underline")


def _blocks(blocks: Iterable[Block], width: int, by: int) -> Drawn:
    for block in blocks:
        match block:
            case Sentence(text, style, fit):
                yield _paragraph(Text(clean(text), STYLES.get(style, "")), width, by, fit)
            case Bullets(lines):
                rows = [(Text("·"), Text(clean(line))) for line in lines]
                yield _grid(PAIR, rows, width, by)
            case Pairs(pairs, _, True):
                inline = " · ".join(f"{clean(name, 60)} {clean(said, 120)}" for name, said in pairs)
                yield _paragraph(Text(inline, "dim"), width, by, False)
            case Pairs(pairs):
                rows = [(Text(clean(name, 30), "dim"), Text(clean(said))) for name, said in pairs]
                yield _grid(PAIR, rows, width, by)
            case Code(code):
                yield from (GAP, _code(code, by), GAP)
            case Table():
                yield _table(block, width, by)
            case Card():
                yield from _card(block, width, by)


def _paragraph(text: Text, width: int, by: int, fit: bool) -> RenderableType:
    """Text with all its lines indented; with `fit` as one line, of as many facts as have room."""
    if not fit:
        return Padding(text, (0, 0, 0, by))
    while text.cell_len > width - by and " · " in text.plain:
        text.right_crop(len(text.plain) - text.plain.rindex(" · "))
    line = Text.assemble(" " * by, text, no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line


def _code(code: str, by: int) -> Group:
    """One line of it a line, whatever the width. (In a group, since rich joins texts printed
    alone.)"""
    lines = (" " * by + clean(line, MAX_CODE_LINE) for line in code.split("\n"))
    return Group(*(Text(line, "cyan", no_wrap=True, overflow="ignore") for line in lines))


def _card(card: Card, width: int, by: int) -> Drawn:
    kind, title = card.advice.kind, clean(card.advice.title)
    topic = (f"{kind}: " if kind != "speed" else "", STYLES.get(kind, ""))
    head = Text.assemble(topic, (title, "dim" if card.left_out else "bold"))
    effect = (f"  {clean(card.effect)}" if card.effect else "", "green")
    tail = Text.assemble(effect, f"  {clean(card.ending)}" if card.ending else "")
    marker = f"{card.number}." if card.number is not None else " ·"
    rule = ("" if card.fit else f"  [{clean(card.advice.rule, 40)}]", "dim")
    yield _grid(PAIR, [(Text(marker), Text.assemble(head, tail, rule))], width, by)
    yield from _blocks(card.body, width, by + BODY - INDENT)
    if card.number is not None:
        yield GAP


def _table(table: Table, width: int, by: int) -> Padding:
    """The columns that have room; a row that heads a group is one text."""
    shown = [at for at, each in enumerate(table.columns) if each.least <= width]
    columns = [table.columns[at] for at in shown]
    length = 16 if width >= LONG_BARS_FROM else 8
    rows: list[Sequence[Text] | Text] = [
        Text(clean(row), "italic dim")
        if isinstance(row, str)
        else [_cell(row[at], table.columns[at].kind, length) for at in shown]
        for row in table.rows
    ]
    if any(each.head for each in columns):
        rows.insert(0, [Text(each.head, "dim") for each in columns])
    return _grid(columns, rows, width, by)


def _grid(
    columns: Sequence[Column], rows: Sequence[Sequence[Text] | Text], width: int, by: int
) -> Padding:
    """Rows below each other, all with columns of one width; a text by itself spans them."""
    cells = [row for row in rows if not isinstance(row, Text)]
    widths = [max(each.cell_len for each in column) for column in zip(*cells, strict=True)]
    least = sum(w if each.whole else min(w, 40) for w, each in zip(widths, columns, strict=True))
    gap = 2 if columns is not PAIR and least + 2 * (len(columns) - 1) <= width - by else 1
    made: list[RenderableType] = []
    grid: Grid | None = None
    for row in rows:
        if isinstance(row, Text):
            grid = None
            made.append(row)
            continue
        if grid is None:
            grid = Grid.grid(padding=(0, gap, 0, 0))
            made.append(grid)
            for column, size in zip(columns, widths, strict=True):
                grid.add_column(
                    justify="right" if column.kind == "number" else "left",
                    no_wrap=column.whole,
                    min_width=size if column.whole else None,
                    overflow="fold",
                    style="dim" if column.kind in ("dim", "gloss") else "",
                )
        grid.add_row(*row)
    return Padding(Group(*made), (0, 0, 0, by))


def _cell(cell: Cell, kind: str, length: int) -> Text:
    if isinstance(cell, Bar):
        return Text(bar(cell.share, length), STYLES[cell.style])
    text, style = cell if isinstance(cell, Styled) else (cell, "")
    cut = kind in ("line", "gloss")
    shown = (clean(text), STYLES.get(style, ""))
    return Text.assemble(shown, no_wrap=cut, overflow="ellipsis" if cut else "fold")
