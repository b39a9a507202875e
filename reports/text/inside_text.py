"""What goes on inside fetching, as lines for a terminal: a few functions, the transforms, where the bytes come from."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import Code, CodeStage, LoaderReport
from ...profiler.base.metadata import clean
from ..words.inside import HotRow, basis_text, code_stages, hot_rows, own_lines, told_by_lines, transform_rows
from ..words.layout import heading, indented
from ..words.storage_words import storage_rows

# A report names what matters; `loaderscope stacks` has more.
LINES = 5
OWN_LINES = 2
TRANSFORMS = 8
# Below this share a function is no reason for anything.
LEAST_SHARE = 0.02
# Collating is looked into where it is at least so large a part of making a batch.
COLLATE_FROM = 0.25
FULL_WORDS_FROM = 100


def inside_lines(loader: LoaderReport, width: int) -> Iterator[RenderableType]:
    """Each part under its heading, an empty line after each; nothing where nothing was seen."""
    if loader.code is not None:
        for name, stage in _worth_showing(loader, loader.code):
            yield heading(f"Inside {clean(name, 20)}")
            yield indented(basis_text(loader.code, stage), "dim")
            functions, own = stage_rows(stage, LINES, OWN_LINES)
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
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for label, sentence in pairs:
            table.add_row(Text(f"  {label}", style="dim"), Text(sentence))
        yield Group(table)
        yield Text("")


def _worth_showing(loader: LoaderReport, code: Code) -> Iterator[tuple[str, CodeStage]]:
    """Fetch, and collate where it matters; another stage only if neither was seen."""
    seen = [(name, stage) for name, stage in code_stages(code) if stage.hot or stage.lines]
    times = {name: (s.total_s or 0.0) for name, s in loader.stages.items() if name in ("fetch", "collate")}
    making = sum(times.values())
    shown = False
    for name, stage in seen:
        if name == "fetch" or (name == "collate" and times.get("collate", 0.0) >= COLLATE_FROM * making):
            shown = True
            yield name, stage
    if not shown and seen:
        yield seen[0]


def stage_rows(stage: CodeStage, lines: int, own_lines_: int) -> tuple[list[HotRow], list[HotRow]]:
    """The hottest functions and the user's own lines, together at most `lines`."""
    functions = [row for row in hot_rows(stage, LEAST_SHARE) if not told_by_lines(row)][:lines]
    own = [row for row in own_lines(stage, functions) if row.fraction >= LEAST_SHARE][:own_lines_]
    return functions[: lines - len(own)], own


def hot_table(rows: list[HotRow], width: int) -> RenderableType:
    """Share with its range, function, place, and the user's line that led there; the user's own are named as such."""
    came = "called from" if width >= FULL_WORDS_FROM else "from"
    table = _grid(("right", "left"))
    for row in rows:
        text = Text()
        if row.kind == "yours":
            text.append("yours ", style="yellow")
        first, second = (row.where, row.code or f"in {row.name}") if row.line else (row.name, row.where)
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
