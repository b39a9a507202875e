"""A comparison for a terminal: each loader with its figures, then what was configured
differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...profiler.base.metadata import clean
from ..compare.compare_model import Comparison, LoaderComparison
from ..compare.compare_words import (
    CAVEAT,
    NO_DIFFERENCE,
    difference_rows,
    headline,
    name_of,
    notes_of,
    setting_rows,
)
from .layout import INDENT, bullets, indented
from .terminal import fitting_width, printed

MAX_WIDTH = 110
GAP = 2
_STYLES = {"faster": "green", "slower": "red", "less": "green", "more": "red", NO_DIFFERENCE: "dim"}


def render_compare_text(
    comparison: Comparison, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """The comparison as text of at most `width` columns. Texts that come from a run are never read
    as markup."""
    width = fitting_width(width, MAX_WIDTH)
    return printed(_parts(comparison, width), width, color, unicode)


def _parts(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    for word, run in (("before", comparison.before), ("after", comparison.after)):
        yield Text(f"{word:<8}{clean(run, width - 8)}")
    for loader in comparison.loaders:
        yield Text("")
        yield from _loader(loader, width)
    if not comparison.loaders:
        yield Text("\nNothing to compare: no loader was recorded in both runs.")
    if comparison.settings:
        yield Text("\nThe runs differ in")
        yield from _settings(setting_rows(comparison.settings))
    yield from bullets(notes_of(comparison))
    if comparison.loaders:
        yield Text(f"\n{CAVEAT}", style="dim")


def _loader(loader: LoaderComparison, width: int) -> Iterator[RenderableType]:
    yield Text(clean(name_of(loader), width), style="bold")
    yield indented(headline(loader))
    yield Text("")
    yield _figures(loader, width)
    yield from bullets(loader.notes)
    if loader.settings:
        yield Text("\n  configured differently")
        yield from _settings(setting_rows(loader.settings))


def _figures(loader: LoaderComparison, width: int) -> Table:
    """Both runs and the judgement; the change with its range only where all of them have room."""
    found = difference_rows(loader)
    rows = [
        (" " * INDENT + row.name, row.before, row.after, row.change, row.judgement) for row in found
    ]
    sizes = [max(map(cell_len, column)) + GAP for column in zip(*rows, strict=True)]
    with_change = sum(sizes[:4]) + len(NO_DIFFERENCE) <= width
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    uncut = sum(sizes[:3]) + len("difference") <= width
    table.add_column(f"{' ' * INDENT}a {loader.per}", no_wrap=uncut)
    table.add_column("before", justify="right", no_wrap=uncut)
    table.add_column("after", justify="right", no_wrap=uncut)
    if with_change:
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, before, after, change, judgement in rows:
        judged = Text.assemble((judgement, _STYLES.get(judgement, "")))
        table.add_row(Text(name), before, after, *((change,) if with_change else ()), judged)
    return table


def _settings(rows: Iterable[tuple[str, str, str]]) -> Iterator[RenderableType]:
    for name, before, after in rows:
        yield indented(f"{name}: {before} → {after}", by=2 * INDENT)
