"""What goes on inside fetching, as lines for a terminal: a few functions, the transforms, where the
bytes come from."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import Code, CodeStage, LoaderReport
from ...profiler.base.metadata import clean
from ..words.inside import HotRow, basis_text, code_stages, hottest, transform_rows
from ..words.storage_words import storage_rows
from .layout import heading, indented, labelled

# A report names what matters; `loaderscope stacks` has more.
LINES = 5
OWN_LINES = 2
TRANSFORMS = 8
# Collating is looked into where it is at least so large a part of making a batch.
COLLATE_FROM = 0.25
FULL_WORDS_FROM = 100


def inside_lines(loader: LoaderReport, width: int) -> Iterator[RenderableType]:
    """Each part under its heading, an empty line after each; nothing where nothing was seen."""
    if loader.code is not None:
        for name, stage in _worth_showing(loader, loader.code):
            yield heading(f"Inside {clean(name, 20)}")
            yield indented(basis_text(loader.code, stage), "dim")
            functions, own = hottest(stage, LINES, OWN_LINES)
            yield hot_table([*functions, *own], width)
            yield Text("")
    if loader.transforms:
        yield heading("The transforms")
        rows = transform_rows(loader.transforms)
        table = _grid(("right", "right", "left"))
        table.add_row(*(Text(head, style="dim") for head in ("   a call", "of fetch", "")))
        for name, mean, share, _, _ in rows[:TRANSFORMS]:
            table.add_row(f"   {mean}", share, Text(name))
        if len(rows) > TRANSFORMS:
            table.add_row("", "", Text(f"… and {len(rows) - TRANSFORMS} more", style="dim"))
        yield Group(table)
        yield Text("")
    pairs = storage_rows(loader.storage)
    if pairs:
        yield heading("What is read")
        yield labelled(pairs)
        yield Text("")


def _worth_showing(loader: LoaderReport, code: Code) -> Iterator[tuple[str, CodeStage]]:
    """Fetch, and collate where it matters; another stage only if neither was seen."""
    seen = [
        (name, stage) for name, stage in code_stages(code) if any(hottest(stage, LINES, OWN_LINES))
    ]
    times = {
        name: (s.total_s or 0.0)
        for name, s in loader.stages.items()
        if name in ("fetch", "collate")
    }
    making = sum(times.values())
    shown = False
    for name, stage in seen:
        if name == "fetch" or (
            name == "collate" and times.get("collate", 0.0) >= COLLATE_FROM * making
        ):
            shown = True
            yield name, stage
    if not shown and seen:
        yield seen[0]


def hot_table(rows: list[HotRow], width: int) -> RenderableType:
    """Share with its range, function, place, and the user's line that led there; the user's own are
    named as such."""
    came = "called from" if width >= FULL_WORDS_FROM else "from"
    table = _grid(("right", "left"))
    for row in rows:
        text = Text()
        if row.kind == "yours":
            text.append("yours ", style="yellow")
        first, second = (
            (row.where, row.code or f"in {row.name}") if row.line else (row.name, row.where)
        )
        text.append(first, style="bold")
        text.append(f"  {second}" if second else "")
        if row.caller and not row.line:
            text.append(f"  {came} {row.caller}", style="dim")
        table.add_row(Text(f"  {row.share}"), text)
    return Group(table)


def _grid(columns: tuple[str, ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    for justify in columns:
        right = justify == "right"
        table.add_column(justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table
