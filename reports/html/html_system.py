"""The plots of the machine: what the system sampler saw, as curves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ...profiler.store.run.run import Run
from ..words.curves import READ, Curve, curves, resampled
from .html_plot import SERIES, Figure, Trace, figures, plain

POINTS = 500


# Chart → its title, its unit, and what makes one of it.
CHARTS = {
    "cpu": ("CPU", "% of all cores", 1.0),
    "processes": ("CPU of the training processes", "cores", 1.0),
    "memory": ("Memory", "GB", 1e9),
    "io": ("Disk and network", "MB/s", 1e6),
    "gpu": ("GPU: some kernel running", "% of the time", 1.0),
    "gpu-memory": ("GPU memory in use", "GB", 1e9),
}


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
