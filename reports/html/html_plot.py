"""What every plot of the HTML report has in common. A figure is plain data, without code or
markup: traces of bars, lines or boxes, and a layout, with the names that plotly.js has for them.

`templates/plots.js` draws it in the browser; colours that depend on light or dark are those of
`style.css`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...profiler.base.metadata import clean

# Middle tones: at least 3:1 against white and against the dark background (WCAG 1.4.11).
RED, GREEN, BLUE, PINK, ORANGE = "#d1495b", "#2e8b57", "#3b7dd8", "#b565c4", "#c2700c"
TEAL, OLIVE, VIOLET, BROWN, GREY = "#178a99", "#8f7a1c", "#6a78d1", "#a8623a", "#838b94"
COLORS = {
    "wait": RED,
    "stall": RED,
    "workers-busy": RED,
    "compute": GREEN,
    "compute_device": GREEN,
    "fetch": BLUE,
    "collate": PINK,
    "pack": ORANGE,
    "hand-over": ORANGE,
    "unpack": TEAL,
    "pin": OLIVE,
    "h2d": VIOLET,
    "startup": BROWN,
}
SERIES = (BLUE, ORANGE, GREEN, PINK, RED, TEAL, OLIVE, VIOLET, BROWN, GREY)


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
    for axis, title in (("xaxis", x), ("yaxis", y)):
        more[axis] = {"title": {"text": title}, **more.get(axis, {})}
    return {"height": height, **more}


def rows_axis(rows: Sequence[str]) -> dict[str, Any]:
    """An axis with a place for each of the rows, from the top."""
    return {
        "type": "category",
        "categoryarray": rows,
        "categoryorder": "array",
        "autorange": "reversed",
        "fixedrange": True,
        "dtick": 1,
    }


def bars(stage: str, name: str, hover: str, **more: Any) -> dict[str, Any]:
    """Horizontal bars of one colour, to which `x`, `y` and `customdata` are added."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [],
        "y": [],
        "customdata": [],
        "hovertemplate": f"{hover}<extra></extra>",
        "marker": {"color": COLORS.get(stage, GREY)},
        **more,
    }


def line(name: str, x: Any, y: Any, style: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A curve."""
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": style, **more}


def plain(text: object, limit: int = 60) -> str:
    """A text from the run, of a length that a plot has room for."""
    return clean(text, limit)


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
