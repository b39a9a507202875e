"""What every plot of the HTML report has in common, and those of the machine. A figure is plain
data, without code or markup, which `templates/plots.js` draws in the browser.

Its traces are bars where the layout names `rows`, boxes of a flame graph where a trace has
`parents`, else curves. Of a trace's `hover`, `{name}`, `{x}` and `{y}` stand for its own values,
`{0}` and `{1}` for the `facts` of the bar pointed at. A layout has the titles of the axes `x` and
`y`, and may say that `x` shows a `range` first, that `y` ends at `top`, and that curves form a
"stack". Colours that depend on light or dark are those of
`style.css`.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..words.curves import READ, Curve, curves, resampled

# Middle tones: at least 3:1 against white and against the dark background (WCAG 1.4.11).
RED, GREEN, BLUE, PINK, ORANGE = "#d1495b", "#2e8b57", "#3b7dd8", "#b565c4", "#c2700c"
TEAL, OLIVE, VIOLET, BROWN, GREY = "#178a99", "#8f7a1c", "#6a78d1", "#a8623a", "#838b94"
COLORS = {
    "wait": RED,
    "stall": RED,
    "compute": GREEN,
    "compute_device": GREEN,
    "fetch": BLUE,
    "collate": PINK,
    "pack": ORANGE,
    "unpack": TEAL,
    "pin": OLIVE,
    "h2d": VIOLET,
}
SERIES = (BLUE, ORANGE, GREEN, PINK, RED, TEAL, OLIVE, VIOLET, BROWN, GREY)

Trace = dict[str, Any]

POINTS = 500
# Chart → its title, its unit, and what makes one of it.
CHARTS = {
    "cpu": ("CPU", "% of all cores", 1.0),
    "memory": ("Memory", "GB", 1e9),
    "io": ("Disk and network", "MB/s", 1e6),
    "gpu": ("GPU: some kernel running", "% of the time", 1.0),
    "gpu-memory": ("GPU memory in use", "GB", 1e9),
}


@dataclass(frozen=True)
class Figure:
    """A plot: `summary` says in a sentence what it shows, for those who cannot see it.

    With `switch`, one of its traces is shown at a time, chosen by these names; the first at first.
    """

    id: str
    title: str
    summary: str
    data: list[Trace]
    layout: dict[str, Any]
    switch: tuple[str, ...] = ()


def plain(text: object, limit: int = 60) -> str:
    """A text from the run, of a length that a plot has room for."""
    return clean(text, limit)


def figures(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Numbers as JSON has them: short, and null where there is none."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


def system_figures(run: Run) -> Iterator[Figure]:
    """The plots there are samples for, of the host that the report's summary is of."""
    system = run.first_host
    if not system or system.machine.rows < 2:
        return
    begin = int(system.machine["t_ns"][0])
    for chart, found in groupby(curves(system), key=lambda curve: curve.chart):
        if chart in CHARTS:
            yield _figure(chart, list(found), begin)


def _figure(chart: str, found: list[Curve], begin: int) -> Figure:
    title, unit, scale = CHARTS[chart]
    data: list[Trace] = []
    said = []
    for curve, color in zip(found, SERIES * 2, strict=False):
        starts, values = resampled(curve.values / scale, min(POINTS, len(curve.values)))
        t, name = (curve.t_ns[starts] - begin) / 1e9, plain(curve.name)
        data.append({"name": name, "color": color, "x": figures(t), "y": figures(values)})
        said.append(f"{name} up to {READ[chart](float(curve.values.max()))}")
    layout = {"height": 260, "x": "seconds from the first sample", "y": unit, "legend": True}
    if unit.startswith("%"):
        layout["top"] = 100
    summary = f"{title} over the run: {'; '.join(said)}."
    return Figure(f"system-{chart}", title, summary, data, layout)
