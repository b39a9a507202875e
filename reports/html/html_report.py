"""The report as one HTML file that opens anywhere, offline: nothing is fetched, nothing is sent."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import suppress

import numpy as np

from ...advisors.schema.report_model import Report, RunInfo
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..document.many import groups_of
from ..document.report import report_sections, shown
from .html_code import Room, flame_figure
from .html_loader import loader_figures
from .html_page import fill
from .html_plot import Figure
from .html_system import system_figures

# Of the 1 MB that a file may have, a loader's plots take up to 100 kB, its tables some 30 kB.
MAX_PLOTTED = 6
MAX_LOADERS = 16


def render_html(report: Report, run: Run) -> str:
    """One self-contained page of at most 1 MB. Raises UsageError where jinja2 is not installed."""
    room = Room(len(groups_of(report)))
    plots: dict[str, list[Figure]] = defaultdict(list)
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        sections = list(report_sections(report, MAX_LOADERS, run))
        pairs = shown(report, run, groups_of(report))
        for number, ((loader, *_), columns) in enumerate(pairs[:MAX_LOADERS]):
            key = f"loader{number}"
            if number < MAX_PLOTTED:
                plots[key] += loader_figures(key, loader, columns)
            flame = flame_figure(key, loader.code, room) if loader.code is not None else None
            plots[f"{key}-flame"] += [flame] if flame is not None else []
        plots["machine"] += system_figures(run)
    first = next((each for each in sections if each.verdict), None)
    return fill(
        title=f"{first.verdict}: {first.title}" if first is not None else "nothing recorded",
        heading="Where each batch's time goes",
        sections=sections,
        plots=plots,
        about=_about(report.run),
    )


def _about(run: RunInfo) -> str:
    """'train.py --lr 0.1 · on node3 · 2025-01-31 09:15 UTC'"""
    when = ""
    with suppress(OverflowError, OSError, ValueError):
        begun = time.gmtime((run.created_unix_ns or 0) / 1e9)
        when = time.strftime("%Y-%m-%d %H:%M UTC", begun) if run.created_unix_ns else ""
    parts = (clean(" ".join(run.argv), 200), f"on {clean(run.host, 80)}" if run.host else "", when)
    return " · ".join(filter(None, parts))
