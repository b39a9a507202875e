"""The list of runs, as a table that fits the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...profiler.store.run.run_list import RunEntry
from ..document.blocks import Column, Styled, Table
from ..words.units import UNKNOWN, size
from .draw import print_blocks

MIN_WIDTH = 70  # the names of runs are never cut: they are there to be copied
_STYLES = {
    "live": "good",
    "interrupted": "own",
    "crashed": "bad",
    "unreadable": "bad",
    "unknown": "dim",
}


def render_list(
    entries: Sequence[RunEntry], width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One line a run: id, state, when, size, loaders, command."""
    columns = (
        Column("run", "name"),
        Column("state", "name"),
        Column("begun", "name"),
        Column("size", "number"),
        Column("command", "line"),
    )
    rows = [
        (
            each.id,
            Styled(each.state, _STYLES.get(each.state, "")),
            _when(each.created_unix_ns),
            size(each.size_bytes),
            each.problem or _command(each),
        )
        for each in entries
    ]
    return print_blocks(
        [Table(columns, rows)], width=max(width, MIN_WIDTH), color=color, unicode=unicode
    )


def _command(entry: RunEntry) -> str:
    command = " ".join(entry.argv) or UNKNOWN
    if entry.processes > 1:
        return f"{command}  ({entry.processes} processes, {entry.loaders} loaders)"
    return command if entry.loaders == 1 else f"{command}  ({entry.loaders or 'no'} loaders)"


def _when(unix_ns: int | None) -> str:
    try:
        return (
            time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_ns / 1e9)) if unix_ns else UNKNOWN
        )
    except (OverflowError, OSError, ValueError):
        return UNKNOWN
