"""The plots of one loader: what a step is made of, its time line, its distributions, and how it
went over the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...advisors.schema.report_model import LoaderReport
from ...profiler.store.run.run import LoaderRun
from ..words.glosses import label_of
from ..words.timeline import Track, Window
from ..words.units import micros, percent
from .html_plot import COLORS, Figure, figures, layout, plain, time_unit

# A few hundred batches are more than a screen shows and few enough for any browser to draw and
# zoom.
WINDOW_BATCHES = 200
SHOWN_AT_FIRST = 16
MAX_TRACKS = 40
DISTRIBUTED = ("wait", "fetch", "collate", "compute")
BINS = 60
BUCKETS = 300
_LEAST_NS = 100.0  # on a logarithmic axis: what is shorter stands here


def loader_figures(key: str, loader: LoaderReport, columns: LoaderRun | None) -> Iterator[Figure]:
    """The plots there is something to draw for; `key` makes their ids unique in the page."""
    yield from _stage_bar(key, loader)
    if columns is not None and columns.batches.rows:
        yield from _time_line(key, Window(columns, WINDOW_BATCHES))
        yield from _distributions(key, columns)
        yield from _history(key, columns)


def _stage_bar(key: str, loader: LoaderReport) -> Iterator[Figure]:
    rows = list(_bar_rows(loader))
    if not rows:
        return
    largest = max(sum(value for _, value in parts) for _, parts in rows)
    unit, scale = time_unit(largest / 1e6)
    data: dict[str, dict[str, Any]] = {}
    for row, parts in rows:
        for name, mean_us in parts:
            label = plain(label_of(name))
            trace = data.setdefault(
                label,
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": label,
                    "x": [],
                    "y": [],
                    "text": [],
                    "customdata": [],
                    "marker": {"color": COLORS.get(name, "#838b94")},
                    "textposition": "inside",
                    "textangle": 0,
                    "insidetextanchor": "middle",
                    "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
                },
            )
            trace["x"] += figures([mean_us / 1e6 * scale])
            trace["y"].append(row)
            trace["text"].append(label if mean_us > largest / 16 else "")
            trace["customdata"].append(micros(mean_us))
    names = [row for row, _ in rows]
    words = [
        f"{row}: " + ", ".join(f"{plain(label_of(n))} {micros(v)}" for n, v in parts)
        for row, parts in rows
    ]
    told = "; ".join(words)
    yield Figure(
        f"{key}-stages",
        "What a step is made of",
        f"Mean times a batch. {told[0].upper()}{told[1:]}.",
        list(data.values()),
        layout(
            110 + 48 * len(rows),
            f"mean time a batch, {unit}",
            "",
            barmode="stack",
            bargap=0.25,
            yaxis={
                "type": "category",
                "categoryarray": names,
                "categoryorder": "array",
                "autorange": "reversed",
                "title": {"text": ""},
                "fixedrange": True,
                "dtick": 1,
            },
        ),
    )


def _bar_rows(loader: LoaderReport) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """(row, [(stage or cause, mean µs a batch)]), from the whole step to its parts."""

    def mean(name: str) -> float:
        stage = loader.stages.get(name)
        return stage.mean_us or 0.0 if stage is not None else 0.0

    def known(*names: str) -> list[tuple[str, float]]:
        return [(name, mean(name)) for name in names if mean(name) > 0]

    step = known("wait", "compute")
    if not step:
        return
    yield "a step", step
    if loader.waiting is not None and loader.waiting.causes and mean("wait"):
        causes = sorted(loader.waiting.causes.items(), key=lambda item: -item[1].share)
        yield (
            "waiting for",
            [(name, each.share * mean("wait")) for name, each in causes if each.share >= 0.0005],
        )
    workers = loader.config.get("num_workers")
    making = known("index", "fetch", "collate")
    if making:
        yield (
            ("a worker’s work" if isinstance(workers, int) and workers > 0 else "making it"),
            making,
        )
    passing = known("pack", "unpack", "pin")
    if passing:
        yield "handing over", passing
    device = known("h2d", "compute_device")
    if device:
        yield "the device", device


def _time_line(key: str, window: Window) -> Iterator[Figure]:
    tracks = window.tracks()
    rows = list(dict.fromkeys(_row(track) for track in tracks))[:MAX_TRACKS]
    if not rows:
        return
    begin = int(window.start.min())
    end_s = (int((window.handed + window.compute.clip(0)).max()) - begin) / 1e9
    unit, scale = time_unit(end_s)
    data: dict[str, dict[str, Any]] = {}
    for track in tracks:
        row = _row(track)
        if row not in rows:
            continue
        for slices in track.slices:
            label = plain(label_of(slices.stage))
            trace = data.setdefault(
                slices.stage,
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": label,
                    "x": [],
                    "y": [],
                    "base": [],
                    "customdata": [],
                    "width": 0.3
                    if track.kind == "sending"
                    else 0.8,  # packing goes on beside fetching: both show
                    "marker": {
                        "color": COLORS.get(slices.stage, "#838b94"),
                        "line": _border(slices.stage),
                    },
                    "hovertemplate": "batch %{customdata[0]}<br>%{fullData.name} %{customdata[1]} "
                    "ms<extra></extra>",
                },
            )
            count = len(slices.row)
            trace["x"] += figures(slices.length_ns / 1e9 * scale)
            trace["base"] += figures((slices.start_ns - begin) / 1e9 * scale, 8)
            trace["y"] += [row] * count
            trace["customdata"] += [
                list(pair)
                for pair in zip(
                    slices.row.tolist(), figures(slices.length_ns / 1e6, 4), strict=True
                )
            ]
    order = (
        "wait",
        "compute",
        "fetch",
        "collate",
        "pack",
        "index",
        "unpack",
        "pin",
        "stall",
        "h2d",
        "compute_device",
    )
    first = max(0, len(window.rows) - SHOWN_AT_FIRST)
    shown = [(int(window.start[first]) - begin) / 1e9 * scale, end_s * scale]
    guessed = any(not track.exact for track in tracks)
    note = (
        " The places of slices on the pin thread and the device are the likely ones."
        if guessed
        else ""
    )
    yield Figure(
        f"{key}-timeline",
        f"Time line of the newest {len(window.rows)} batches",
        f"Time runs from left to right; rows: {', '.join(rows)}. A batch is fetched and collated "
        "in a worker, packed, and waited for in the training loop. Drag to zoom, double-click to "
        f"see all.{note}",
        [data[name] for name in order if name in data],
        layout(
            130 + 30 * len(rows),
            f"{unit} from the first of these batches",
            "",
            barmode="overlay",
            dragmode="zoom",
            xaxis={"range": figures(shown, 6), "rangeslider": {"visible": True, "thickness": 0.1}},
            yaxis={
                "type": "category",
                "categoryarray": rows,
                "categoryorder": "array",
                "autorange": "reversed",
                "title": {"text": ""},
                "fixedrange": True,
                "dtick": 1,
            },
        ),
    )


def _border(stage: str) -> dict[str, Any]:
    """Neighbours of one colour need a border; a slice of a pixel would be all border."""
    return (
        {"width": 0.5, "color": "#80808099"}
        if stage in ("wait", "compute", "fetch")
        else {"width": 0}
    )


def _row(track: Track) -> str:
    """Sending is drawn on its worker's row."""
    return track.name.removesuffix(" sending")


def _distributions(key: str, loader: LoaderRun) -> Iterator[Figure]:
    data, told = [], []
    for name in DISTRIBUTED:
        values = loader.batches[f"{name}_ns"]
        values = values[values >= 0].astype(np.float64).clip(_LEAST_NS)
        if not len(values):
            continue
        edges, shares = _histogram(values)
        # Percentiles are in the table; a distribution's shape is what a picture adds.
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label_of(name),
                "x": figures(edges / 1e6),
                "y": figures(shares * 100, 4),
                "line": {"shape": "hv", "color": COLORS[name], "width": 1.8},
                "fill": "tozeroy",
                "fillcolor": f"{COLORS[name]}22",
                "hovertemplate": "%{fullData.name} about %{x:.3g} ms: %{y:.3g} % of "
                "batches<extra></extra>",
            }
        )
        told.append(
            f"{label_of(name)} from {micros(values.min() / 1e3)} to {micros(values.max() / 1e3)}"
        )
    if data:
        yield Figure(
            f"{key}-distributions",
            "How much it varies",
            f"How often each time occurred, {loader.batches.rows:,} batches: {'; '.join(told)}.",
            data,
            layout(
                320,
                "ms a batch (logarithmic)",
                "% of batches",
                xaxis={"type": "log"},
                yaxis={"rangemode": "tozero", "fixedrange": True},
            ),
        )


def _histogram(
    values: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(edges, share of the values from each edge on) over logarithmic bins that hold them all."""
    low, high = float(values.min()) * 0.98, float(values.max()) * 1.02
    edges = np.geomspace(low, high, BINS + 1)
    counts, _ = np.histogram(values, edges)
    return np.concatenate(([edges[0]], edges)), np.concatenate(([0.0], counts / len(values), [0.0]))


def _history(key: str, loader: LoaderRun) -> Iterator[Figure]:
    batches = loader.batches
    t = batches["t_ns"].astype(np.float64)
    if batches.rows < 3:
        return
    starts = np.unique(
        np.linspace(0, batches.rows, min(BUCKETS, batches.rows) + 1).astype(np.int64)[:-1]
    )
    x = figures((t[starts] - t[0]) / 1e9)
    data = []
    for name in ("wait", "compute"):
        values = batches[f"{name}_ns"]
        known = values >= 0
        counts = np.add.reduceat(known.astype(np.float64), starts)
        sums = np.add.reduceat(np.where(known, values, 0).astype(np.float64), starts)
        means = np.divide(sums, counts, out=np.full(len(starts), np.nan), where=counts > 0)
        if known.any():
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": label_of(name),
                    "x": x,
                    "y": figures(means / 1e6),
                    "stackgroup": "step",
                    "line": {"width": 0.8, "color": COLORS[name], "shape": "hv"},
                    "hovertemplate": "%{fullData.name} %{y:.4g} ms a batch<extra></extra>",
                }
            )
    if not data:
        return
    wait, compute = (batches[f"{name}_ns"].clip(0) for name in ("wait", "compute"))
    step = wait.sum(dtype=np.float64) + compute.sum(dtype=np.float64)
    share = percent(float(wait.sum(dtype=np.float64) / step)) if step > 0 else "an unknown part"
    yield Figure(
        f"{key}-history",
        "Over the run",
        f"Wait and compute a batch, as the run went on; waiting is {share} of the steps shown.",
        data,
        layout(
            280,
            "seconds from the first batch shown",
            "ms a batch",
            hovermode="x unified",
            yaxis={"rangemode": "tozero"},
        ),
    )
