"""The plots of the machine: what the system sampler saw, as curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from ...profiler.store.run.run import Run
from ..words.curves import Curve, curves, resampled
from ..words.units import percent, size
from .html_plot import SERIES, Figure, Trace, figures, plain

POINTS = 500


def _share(value: float) -> str:
    return percent(value / 100)


# Chart → (title, unit, what makes one of it, "up to …" in words).
CHARTS: dict[str, tuple[str, str, float, Callable[[float], str]]] = {
    "cpu": ("CPU", "% of all cores", 1, _share),
    "processes": ("CPU of the training processes", "cores", 1, "{:.2f} cores".format),
    "memory": ("Memory", "GB", 1e9, size),
    "io": ("Disk and network", "MB/s", 1e6, lambda value: f"{size(value)}/s"),
    "gpu": ("GPU: some kernel running", "% of the time", 1, _share),
    "gpu-memory": ("GPU memory in use", "GB", 1e9, size),
}


def system_figures(run: Run) -> Iterator[Figure]:
    """The plots there are samples for, of the host that the report's summary is of."""
    system = run.first_host
    if system is None or system.machine.rows < 2:
        return
    begin = int(system.machine["t_ns"][0])
    for chart, found in groupby(curves(system), key=lambda curve: curve.chart):
        if chart in CHARTS:
            yield _figure(chart, list(found), begin)


def _figure(chart: str, found: list[Curve], begin: int) -> Figure:
    title, unit, scale, words = CHARTS[chart]
    data: list[Trace] = []
    said = []
    for curve, color in zip(found, SERIES * 2, strict=False):
        starts, values = resampled(curve.values / scale, min(POINTS, len(curve.values)))
        t, name = (curve.t_ns[starts] - begin) / 1e9, plain(curve.name)
        data.append({"name": name, "color": color, "x": figures(t), "y": figures(values)})
        said.append(f"{name} up to {words(float(curve.values.max()))}")
    layout = {"height": 260, "x": "seconds from the first sample", "y": unit, "legend": True}
    if unit.startswith("%"):
        layout["top"] = 100
    summary = f"{title} over the run: {'; '.join(said)}."
    return Figure(f"system-{chart}", title, summary, data, layout)
