"""What every plot of the HTML report has in common. A figure is plain data for plotly.js, without
code or markup.

Colours and fonts that depend on light or dark are set in the browser (`templates/report.js`), which
knows which it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...profiler.base.metadata import clean

# Middle tones: at least 3:1 against white and against the dark background (WCAG 1.4.11).
COLORS = {
    "wait": "#d1495b",
    "stall": "#d1495b",
    "compute": "#2e8b57",
    "compute_device": "#2e8b57",
    "fetch": "#3b7dd8",
    "collate": "#b565c4",
    "index": "#838b94",
    "pack": "#c2700c",
    "hand-over": "#c2700c",
    "queued": "#7c8b99",
    "queue": "#7c8b99",
    "unpack": "#178a99",
    "pin": "#8f7a1c",
    "h2d": "#6a78d1",
    "startup": "#a8623a",
    "workers-busy": "#d1495b",
    "other": "#838b94",
    "unknown": "#838b94",
}
SERIES = (
    "#3b7dd8",
    "#c2700c",
    "#2e8b57",
    "#b565c4",
    "#d1495b",
    "#178a99",
    "#8f7a1c",
    "#6a78d1",
    "#a8623a",
    "#838b94",
)

# Plotly reads a few tags and entities in every text it draws.
_MARKUP = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})


@dataclass(frozen=True)
class Figure:
    """A plot: `summary` says in a sentence what it shows, for those who cannot see it.

    With `switch`, one of its traces is shown at a time, chosen by these names.
    """

    id: str
    title: str
    summary: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    switch: tuple[str, ...] = ()

    @property
    def height_px(self) -> int:
        return int(self.layout["height"])


def layout(height: int, x: str, y: str, **more: Any) -> dict[str, Any]:
    """A layout with axis titles `x` and `y`; keyword arguments named `xaxis` and `yaxis` are merged
    into the axes."""
    made: dict[str, Any] = {
        "height": height,
        "margin": {"l": 60, "r": 12, "t": 8, "b": 48},
        "xaxis": {"title": {"text": x}, "automargin": True, **more.pop("xaxis", {})},
        "yaxis": {"title": {"text": y}, "automargin": True, **more.pop("yaxis", {})},
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
        },
        "hoverlabel": {"align": "left"},
        **more,
    }
    return made


def plain(text: object, limit: int = 60) -> str:
    """A text from the run as plotly shows it literally."""
    return clean(text, limit).translate(_MARKUP)


def figures(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Numbers as JSON has them: short, and null where there is none."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


def time_unit(largest_s: float) -> tuple[str, float]:
    """('ms', 1e3): the unit in which a time this large reads well, and how many of it make a
    second."""
    for unit, scale, limit in (("µs", 1e6, 1e-3), ("ms", 1e3, 1.0)):
        if largest_s < limit:
            return unit, scale
    return "s", 1.0
