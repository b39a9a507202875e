"""The list of runs, as a table that fits the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...profiler.base.metadata import clean
from ...profiler.run.run_list import RunEntry
from ..words.units import size
from .paint import paint

_STYLES = {"live": "green", "crashed": "red", "unreadable": "red", "unknown": "dim", "finished": ""}


def render_list(entries: Sequence[RunEntry], width: int = 80, color: bool = False) -> str:
    """One line a run: id, state, when, size, loaders, command."""
    lines = [paint(f"{'run':<23} {'state':<10} {'begun':<16} {'size':>7}  command", "dim", color)]
    for entry in entries:
        state = paint(f"{clean(entry.state, 10):<10}", _STYLES.get(entry.state, ""), color)
        what = entry.problem or _command(entry)
        room = max(8, width - 61)
        lines.append(
            f"{clean(entry.id, 23):<23} {state} {_when(entry.created_unix_ns):<16} {size(entry.size_bytes):>7}"
            f"  {clean(what, room)}"
        )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _command(entry: RunEntry) -> str:
    command = " ".join(entry.argv) or "–"
    if entry.processes > 1:
        return f"{command}  ({entry.processes} processes, {entry.loaders} loaders)"
    return command if entry.loaders == 1 else f"{command}  ({entry.loaders or 'no'} loaders)"


def _when(unix_ns: int | None) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime((unix_ns or 0) / 1e9)) if unix_ns else "–"
    except (OverflowError, OSError, ValueError):
        return "–"
