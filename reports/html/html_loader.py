"""The plots of one loader: what a step is made of, its time line, its distributions, and how it
went over the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...advisors.schema.report_model import LoaderReport
from ...profiler.store.run.run import LoaderRun
from ..words.curves import resampled
from ..words.glosses import label_of
from ..words.timeline import Track, Window
from ..words.units import micros, percent
from .html_plot import COLORS, Figure, bars, figures, layout, line, plain, rows_axis, time_unit

# A few hundred batches are more than a screen shows and few enough for any browser to draw and
# zoom.
WINDOW_BATCHES = 200
SHOWN_AT_FIRST = 16
MAX_TRACKS = 40
DISTRIBUTED = ("wait", "fetch", "collate", "compute")
BINS = 60
BUCKETS = 300
_LEAST_NS = 100.0  # on a logarithmic axis: what is shorter stands here
# Later ones are drawn over earlier ones.
_ORDER = ("wait", "compute", "fetch", "collate", "pack", "index", "unpack", "pin", "stall", "h2d")

Floats = npt.NDArray[np.float64]
Parts = list[tuple[str, float]]


def loader_figures(key: str, loader: LoaderReport, columns: LoaderRun | None) -> Iterator[Figure]:
    """The plots there is something to draw for; `key` makes their ids unique in the page."""
    rows = [(row, parts) for row, parts in _bar_rows(loader) if parts]
    if rows:
        yield _stage_bar(key, rows)
    if columns is not None and columns.batches.rows:
        window = Window(columns, WINDOW_BATCHES)
        tracks = window.tracks()
        if tracks:
            yield _time_line(key, window, tracks)
        yield from _distributions(key, columns)
        yield from _history(key, columns)


def _stage_bar(key: str, rows: list[tuple[str, Parts]]) -> Figure:
    largest = max(sum(value for _, value in parts) for _, parts in rows)
    unit, scale = time_unit(largest / 1e6)
    data: dict[str, dict[str, Any]] = {}
    said = []
    for row, parts in rows:
        words = [(plain(label_of(name)), micros(mean)) for name, mean in parts]
        said.append(f"{row}: {', '.join(map(' '.join, words))}")
        for (name, mean), (label, time) in zip(parts, words, strict=True):
            if label not in data:
                inside = {"textposition": "inside", "textangle": 0, "insidetextanchor": "middle"}
                hover = "%{fullData.name}: %{customdata}"
                data[label] = bars(name, label, hover, text=[], **inside)
            trace = data[label]
            trace["x"] += figures([mean / 1e6 * scale])
            trace["y"].append(row)
            trace["text"].append(label if mean > largest / 16 else "")
            trace["customdata"].append(time)
    summary = "; ".join(said)
    return Figure(
        f"{key}-stages",
        "What a step is made of",
        f"Mean times per batch. {summary[0].upper()}{summary[1:]}.",
        list(data.values()),
        layout(
            110 + 48 * len(rows),
            f"mean time per batch, {unit}",
            "",
            barmode="stack",
            bargap=0.25,
            yaxis=rows_axis([row for row, _ in rows]),
        ),
    )


def _bar_rows(loader: LoaderReport) -> Iterator[tuple[str, Parts]]:
    """(row, [(stage or cause, mean µs a batch)]), from the whole step to its parts."""
    means = {name: stage.mean_us or 0.0 for name, stage in loader.stages.items()}

    def known(*names: str) -> Parts:
        return [(name, means[name]) for name in names if means.get(name, 0.0) > 0]

    if not known("wait", "compute"):
        return
    yield "a step", known("wait", "compute")
    if loader.waiting is not None:
        causes = sorted(loader.waiting.causes.items(), key=lambda item: -item[1].share)
        wait = means.get("wait", 0.0)
        parts = [(name, each.share * wait) for name, each in causes if each.share >= 0.0005]
        yield "waiting for", parts if wait else []
    workers = loader.config.get("num_workers")
    several = isinstance(workers, int) and workers > 0
    yield "a worker’s work" if several else "making it", known("index", "fetch", "collate")
    yield "handing over", known("pack", "unpack", "pin")
    yield "the device", known("h2d", "compute_device")


def _time_line(key: str, window: Window, tracks: tuple[Track, ...]) -> Figure:
    # Sending is drawn on its worker's row.
    names = [track.name.removesuffix(" sending") for track in tracks]
    rows = list(dict.fromkeys(names))[:MAX_TRACKS]
    begin = int(window.start.min())
    end_s = (window.end - begin) / 1e9
    unit, scale = time_unit(end_s)
    data: dict[str, dict[str, Any]] = {}
    for track, row in zip(tracks, names, strict=True):
        for slices in track.slices if row in rows else ():
            stage = slices.stage
            if stage not in data:
                hover = "batch %{customdata[0]}<br>%{fullData.name} %{customdata[1]} ms"
                # Packing overlaps fetching: both show.
                size = 0.3 if track.kind == "sending" else 0.8
                data[stage] = bars(stage, plain(label_of(stage)), hover, base=[], width=size)
                data[stage]["marker"]["line"] = _border(stage)
            trace, lengths_ms = data[stage], figures(slices.length_ns / 1e6, 4)
            trace["x"] += figures(slices.length_ns / 1e9 * scale)
            trace["base"] += figures((slices.start_ns - begin) / 1e9 * scale, 8)
            trace["y"] += [row] * len(slices.row)
            pairs = zip(slices.row.tolist(), lengths_ms, strict=True)
            trace["customdata"] += map(list, pairs)
    first = max(0, len(window.rows) - SHOWN_AT_FIRST)
    shown = [(int(window.start[first]) - begin) / 1e9 * scale, end_s * scale]
    note = " The places of slices on the pin thread and the device are the likely ones."
    return Figure(
        f"{key}-timeline",
        f"Time line of the newest {len(window.rows)} batches",
        f"Time runs from left to right; rows: {', '.join(rows)}. A batch is fetched and collated "
        "in a worker, packed, and waited for in the training loop. Drag to zoom, double-click to "
        f"see all.{'' if all(track.exact for track in tracks) else note}",
        [data[name] for name in (*_ORDER, "compute_device") if name in data],
        layout(
            130 + 30 * len(rows),
            f"{unit} from the first of these batches",
            "",
            barmode="overlay",
            dragmode="zoom",
            xaxis={"range": figures(shown, 6), "rangeslider": {"visible": True, "thickness": 0.1}},
            yaxis=rows_axis(rows),
        ),
    )


def _faint(color: str) -> str:
    """An area's colour; plotly 6 knows no colours of eight digits."""
    red, green, blue = bytes.fromhex(color[1:])
    return f"rgba({red}, {green}, {blue}, 0.13)"


def _border(stage: str) -> dict[str, Any]:
    """Neighbours of one colour need a border; a slice of a pixel would be all border."""
    long = stage in ("wait", "compute", "fetch")
    return {"width": 0.5, "color": "rgba(128, 128, 128, 0.6)"} if long else {"width": 0}


def _distributions(key: str, loader: LoaderRun) -> Iterator[Figure]:
    data, said = [], []
    for name in DISTRIBUTED:
        values = loader.batches[f"{name}_ns"]
        values = values[values >= 0].astype(np.float64).clip(_LEAST_NS)
        if not len(values):
            continue
        edges, shares = _histogram(values)
        label, low, high = label_of(name), micros(values.min() / 1e3), micros(values.max() / 1e3)
        said.append(f"{label} from {low} to {high}")
        # Percentiles are in the table; a distribution's shape is what a picture adds.
        data.append(
            line(
                label,
                figures(edges / 1e6),
                figures(shares * 100, 4),
                {"shape": "hv", "color": COLORS[name], "width": 1.8},
                fill="tozeroy",
                fillcolor=_faint(COLORS[name]),
                hovertemplate="%{fullData.name} about %{x:.3g} ms: %{y:.3g} % of batches"
                "<extra></extra>",
            )
        )
    axes = {"xaxis": {"type": "log"}, "yaxis": {"rangemode": "tozero", "fixedrange": True}}
    if data:
        yield Figure(
            f"{key}-distributions",
            "How much it varies",
            f"How often each time occurred, {loader.batches.rows:,} batches: {'; '.join(said)}.",
            data,
            layout(320, "ms per batch (logarithmic)", "% of batches", **axes),
        )


def _histogram(values: Floats) -> tuple[Floats, Floats]:
    """(edges, share of the values from each edge on) over logarithmic bins that hold them all."""
    low, high = float(values.min()) * 0.98, float(values.max()) * 1.02
    edges = np.geomspace(low, high, BINS + 1)
    counts, _ = np.histogram(values, edges)
    return np.concatenate(([edges[0]], edges)), np.concatenate(([0.0], counts / len(values), [0.0]))


def _history(key: str, loader: LoaderRun) -> Iterator[Figure]:
    batches = loader.batches
    if batches.rows < 3:
        return
    t = batches["t_ns"].astype(np.float64)
    data, totals = [], {}
    for name in ("wait", "compute"):
        values = batches[f"{name}_ns"]
        known = values >= 0
        totals[name] = float(values.clip(0).sum(dtype=np.float64))
        measured = np.where(known, values, np.nan)
        starts, means = resampled(measured, min(BUCKETS, batches.rows))
        x = figures((t[starts] - t[0]) / 1e9)
        style = {"width": 0.8, "color": COLORS[name], "shape": "hv"}
        hover = "%{fullData.name} %{y:.4g} ms per batch<extra></extra>"
        more = {"stackgroup": "step", "hovertemplate": hover}
        if known.any():
            data.append(line(label_of(name), x, figures(means / 1e6), style, **more))
    step = sum(totals.values())
    share = percent(totals["wait"] / step) if step > 0 else "an unknown part"
    axes = {"hovermode": "x unified", "yaxis": {"rangemode": "tozero"}}
    if data:
        yield Figure(
            f"{key}-history",
            "Over the run",
            f"Wait and compute per batch over the run; waiting is {share} of the steps shown.",
            data,
            layout(280, "seconds from the first batch shown", "ms per batch", **axes),
        )
