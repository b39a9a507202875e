"""How good predictions were, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...profiler.base.metadata import clean
from ..words.accuracy import ALL, AccuracyRow, unsure_trials
from ..words.units import UNKNOWN, percent
from .terminal import printed


def render_accuracy(
    rows: Sequence[AccuracyRow],
    width: int = 80,
    color: bool = False,
    unicode: bool = True,
    unsure: int = 0,
) -> str:
    """A line a host and setting. `unsure`: of so many further trials the factor is not known well
    enough."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("host", max_width=24)
    table.add_column("changed")
    for head in ("trials", "median error", "bias", "in the range"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        host = Text(clean(row.host or UNKNOWN, 60))
        said = (f"{row.trials:,}", percent(row.median_error), f"{row.median_bias * 100:+.0f} %")
        table.add_row(
            host,
            clean(row.changed, 80),
            *said,
            percent(row.inside_share),
            style="bold" if row.changed == ALL else "",
        )
    parts: list[RenderableType] = [
        table,
        Text(
            "Measured by tuning, against what was predicted; four in five should be in the range.",
            "dim",
        ),
    ]
    if unsure:
        parts.append(Text(f"Left out: {unsure_trials(unsure)}.", "dim"))
    return printed(parts, width, color, unicode)
