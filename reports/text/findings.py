"""What `doctor` found, and the mend for what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ...profiler.base.metadata import clean
from ...profiler.doctor import Check
from .layout import hanging
from .terminal import fitting_width, printed

_MARKS = {True: ("ok", "green"), False: ("missing", "red"), None: ("no", "dim")}
MAX_WIDTH = 100


def render_findings(
    findings: Sequence[Check], width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One finding a paragraph, then how many can be mended."""
    table = Table.grid(padding=(0, 1))
    table.add_column(min_width=7, no_wrap=True)
    table.add_column(overflow="fold")
    for each in findings:
        table.add_row(
            Text(*_MARKS[each.ok]), Text(f"{clean(each.name, 60)}: {clean(each.finding)}")
        )
        if each.mend and each.ok is not True:
            table.add_row("", hanging("→", Text(clean(each.mend), style="bold"), by=0))
    missing = sum(each.ok is False for each in findings)
    said = "Everything that this machine has can be measured."
    if missing:
        said = f"{missing} of {len(findings)} can be mended: see the arrows."
    return printed((table, Text(""), Text(said)), fitting_width(width, MAX_WIDTH), color, unicode)
