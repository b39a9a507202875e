"""What `loaderscope stacks` prints: the hottest functions and the user's own lines of every
stage."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..words.inside import (
    HotRow,
    basis_text,
    code_stages,
    hot_rows,
    own_lines,
    told_by_lines,
    why_no_stacks,
)
from ..words.rows import title_of
from ..words.units import bar, percent
from .inside_text import hot_table
from .layout import bullets, heading, indented
from .terminal import fitting_width, printed
from .text import MAX_LOADERS

FUNCTIONS = 8
OWN_LINES = 4
LIBRARIES = 5
BAR = 10
LEAST_SHARE = 0.005
WIDE_FROM = 100


def render_stacks(
    report: Report, run: Run, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """The stages of every loader of which there are samples. Raises UsageError, with the reason, if
    there are none."""
    seen = [loader for loader in report.loaders if code_stages(loader.code)]
    if not seen:
        raise UsageError(f"this run holds no stacks: {why_no_stacks(report, run)}")
    width = fitting_width(width)
    several = len(report.loaders) > 1
    parts = [part for loader in seen[:MAX_LOADERS] for part in _loader(loader, several, width)]
    return printed(parts, width, color, unicode)


def _loader(loader: LoaderReport, several: bool, width: int) -> Iterator[RenderableType]:
    code = loader.code
    assert code is not None
    yield Text(title_of(loader, several), style="bold")
    yield indented(
        f"{basis_text(code)}; shares of a stage, with the range that holds them 19 times in 20",
        "dim",
    )
    yield Text("")
    for name, stage in code_stages(code):
        yield heading(f"{clean(name, 40)}")
        yield indented(basis_text(code, stage), "dim")
        functions = hot_rows(stage, LEAST_SHARE)
        if width < WIDE_FROM:  # where there is room, what a function took itself is beside it
            functions = [row for row in functions if not told_by_lines(row)]
        functions = functions[:FUNCTIONS]
        own = own_lines(stage, functions)[:OWN_LINES]
        if functions or own:
            rows = [*functions, *(row for row in own if row.fraction >= LEAST_SHARE)]
            yield _table(rows) if width >= WIDE_FROM else hot_table(rows, width)
        else:
            yield indented("no frame was seen")
        libraries = sorted(stage.libraries.items(), key=lambda item: -item[1])[:LIBRARIES]
        shares = [
            f"{clean(library, 40) or 'your own code'} {percent(share)}"
            for library, share in libraries
            if share > 0
        ]
        if shares:
            yield indented(f"innermost: {', '.join(shares)}", "dim")
        yield Text("")
    if code.reason:
        yield from bullets((code.reason,))
        yield Text("")


def _table(rows: list[HotRow]) -> RenderableType:
    """A line each; the user's own are named as such."""
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("  share", justify="right", no_wrap=True)
    table.add_column("itself", justify="right", no_wrap=True)
    table.add_column("", width=BAR, no_wrap=True)
    table.add_column("", no_wrap=True, style="yellow")
    table.add_column("function", overflow="fold", ratio=3)
    table.add_column("where", overflow="fold", ratio=2)
    table.add_column("called from, or the line", overflow="fold", ratio=2)
    for row in rows:
        drawn = Text(bar(row.fraction, BAR), style="cyan")
        own = "yours" if row.kind == "yours" else ""
        table.add_row(
            f"  {row.share}",
            row.itself,
            drawn,
            own,
            Text(row.name, style="bold"),
            Text(row.where),
            Text(row.code or row.caller, style="dim"),
        )
    return Group(table)
