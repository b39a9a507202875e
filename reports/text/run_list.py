"""The list of runs, as a table that fits the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ...profiler.base.metadata import clean
from ...profiler.store.run.run_list import RunEntry
from ..words.units import UNKNOWN, size
from .terminal import printed

MIN_WIDTH = 70  # the names of runs are never cut: they are there to be copied
_STYLES = {
    "live": "green",
    "interrupted": "yellow",
    "crashed": "red",
    "unreadable": "red",
    "unknown": "dim",
}


def render_list(
    entries: Sequence[RunEntry], width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One line a run: id, state, when, size, loaders, command."""
    width = max(width, MIN_WIDTH)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for head, least in (("run", 23), ("state", 10), ("begun", 16)):
        table.add_column(head, min_width=least, no_wrap=True)
    table.add_column("size", justify="right", min_width=7, no_wrap=True)
    table.add_column("command")
    for entry in entries:
        state = Text(clean(entry.state, 11), style=_STYLES.get(entry.state, ""))
        what = Text(
            clean(entry.problem or _command(entry), width), no_wrap=True, overflow="ellipsis"
        )
        table.add_row(
            Text(clean(entry.id, 23)),
            state,
            _when(entry.created_unix_ns),
            size(entry.size_bytes),
            what,
        )
    return printed((table,), width, color, unicode)


def _command(entry: RunEntry) -> str:
    command = " ".join(entry.argv) or UNKNOWN
    if entry.processes > 1:
        return f"{command}  ({entry.processes} processes, {entry.loaders} loaders)"
    return command if entry.loaders == 1 else f"{command}  ({entry.loaders or 'no'} loaders)"


def _when(unix_ns: int | None) -> str:
    try:
        return (
            time.strftime("%Y-%m-%d %H:%M", time.localtime((unix_ns or 0) / 1e9))
            if unix_ns
            else UNKNOWN
        )
    except (OverflowError, OSError, ValueError):
        return UNKNOWN
