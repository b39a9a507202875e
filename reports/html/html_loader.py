"""The plots of one loader: what a step is made of, its time line, its distributions, and how it
went over the run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advisors.schema.report_model import LoaderReport
from ...advisors.stage_model.measured import measured
from ...profiler.store.run.run import LoaderRun
from ..document.stages import LEAST_CAUSE, causes
from ..words.curves import Floats, resampled
from ..words.glosses import label_of
from ..words.timeline import Track, Window
from ..words.units import micros, percent
from .html_plot import COLORS, GREY, Figure, Trace, figures, plain, time_unit

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
_ORDER = (
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

Parts = list[tuple[str, float]]


def loader_figures(key: str, loader: LoaderReport, columns: LoaderRun | None) -> Iterator[Figure]:
    """The plots there is something to draw for; `key` makes their ids unique in the page."""
    rows = {row: parts for row, parts in _bar_rows(loader) if parts}
    if rows:
        yield _stage_bar(key, rows)
    if columns and columns.batches.rows:
        window = Window(columns, WINDOW_BATCHES)
        tracks = window.tracks()
        if tracks:
            yield _time_line(key, window, tracks)
        yield from _distributions(key, columns)
        yield from _history(key, columns)


def _bars(stage: str, hover: str) -> Trace:
    """Bars of one colour, to which places, lengths and facts are added."""
    color = COLORS.get(stage, GREY)
    empty: Trace = {name: [] for name in ("x", "y", "base", "text", "facts")}
    return {"name": plain(label_of(stage)), "color": color, "hover": hover, **empty}


def _stage_bar(key: str, rows: dict[str, Parts]) -> Figure:
    largest = max(sum(value for _, value in parts) for parts in rows.values())
    unit, scale = time_unit(largest / 1e6)
    data: dict[str, Trace] = {}
    said = []
    for row, parts in rows.items():
        words, begin = [], 0.0
        for name, mean in parts:
            trace = data.setdefault(label_of(name), _bars(name, "{name}: {0}"))
            words.append(f"{trace['name']} {micros(mean)}")
            trace["x"] += figures([mean / 1e6 * scale])
            trace["base"] += figures([begin / 1e6 * scale])
            trace["y"].append(row)
            trace["text"].append(trace["name"] if mean > largest / 16 else "")
            trace["facts"].append([micros(mean)])
            begin += mean
        said.append(f"{row}: {', '.join(words)}")
    summary = "; ".join(said)
    return Figure(
        f"{key}-stages",
        "What a step is made of",
        f"Mean times per batch. {summary[0].upper()}{summary[1:]}.",
        list(data.values()),
        {"height": 110 + 48 * len(rows), "x": f"mean time per batch, {unit}", "rows": list(rows)},
    )


def _bar_rows(loader: LoaderReport) -> Iterator[tuple[str, Parts]]:
    """(row, [(stage or cause, mean µs a batch)]), from the whole step to its parts."""
    means = {name: stage.mean_us or 0.0 for name, stage in loader.stages.items()}

    def known(*names: str) -> Parts:
        return [(name, means[name]) for name in names if means.get(name, 0.0) > 0]

    if not known("wait", "compute"):
        return
    yield "a step", known("wait", "compute")
    wait = means.get("wait", 0.0)
    waited = [(name, each.share * wait) for name, each in causes(loader)]
    yield "waiting for", [each for each in waited if each[1] >= LEAST_CAUSE * wait > 0]
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
    data: dict[str, Trace] = {}
    for track, row in zip(tracks, names, strict=True):
        for slices in track.slices if row in rows else ():
            made = _bars(slices.stage, "batch {0}\n{name} {1} ms")
            trace, lengths_ms = data.setdefault(slices.stage, made), slices.length_ns / 1e6
            # Packing overlaps fetching: both show.
            trace["size"] = 0.3 if track.kind == "sending" else 0.8
            trace["x"] += figures(slices.length_ns / 1e9 * scale)
            trace["base"] += figures((slices.start_ns - begin) / 1e9 * scale, 8)
            trace["y"] += [row] * len(slices.row)
            trace["facts"] += zip(slices.row.tolist(), figures(lengths_ms, 4), strict=True)
    first = max(0, len(window.rows) - SHOWN_AT_FIRST)
    shown = [(int(window.start[first]) - begin) / 1e9 * scale, end_s * scale]
    note = " The places of slices on the pin thread and the device are the likely ones."
    return Figure(
        f"{key}-timeline",
        f"Time line of the newest {len(window.rows)} batches",
        f"Time runs from left to right; rows: {', '.join(rows)}. A batch is fetched and collated "
        "in a worker, packed, and waited for in the training loop. Drag to zoom, double-click to "
        f"see all.{'' if all(track.exact for track in tracks) else note}",
        [data[name] for name in _ORDER if name in data],
        {
            "height": 130 + 30 * len(rows),
            "x": f"{unit} from the first of these batches",
            "rows": rows,
            "range": figures(shown, 6),
        },
    )


def _distributions(key: str, loader: LoaderRun) -> Iterator[Figure]:
    data, said = [], []
    for name in DISTRIBUTED:
        values = measured(loader.batches[f"{name}_ns"]).clip(_LEAST_NS)
        if not len(values):
            continue
        edges, shares = _histogram(values)
        label, low, high = label_of(name), micros(values.min() / 1e3), micros(values.max() / 1e3)
        said.append(f"{label} from {low} to {high}")
        # Percentiles are in the table; a distribution's shape is what a picture adds.
        data.append(
            {
                "name": label,
                "color": COLORS[name],
                "x": figures(edges / 1e6),
                "y": figures(shares * 100, 4),
                "hover": "{name} about {x} ms: {y} % of batches",
            }
        )
    if data:
        yield Figure(
            f"{key}-distributions",
            "How much it varies",
            f"How often each time occurred, {loader.batches.rows:,} batches: {'; '.join(said)}.",
            data,
            {
                "height": 320,
                "x": "ms per batch (logarithmic)",
                "y": "% of batches",
                "log": True,
                "form": "area",
            },
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
    t = batches.floats("t_ns")
    data, totals = [], {}
    for name in ("wait", "compute"):
        values = batches.floats(f"{name}_ns")
        totals[name] = float(np.nansum(values))
        starts, means = resampled(values, min(BUCKETS, batches.rows))
        if np.isfinite(values).any():
            data.append(
                {
                    "name": label_of(name),
                    "color": COLORS[name],
                    "x": figures((t[starts] - t[0]) / 1e9),
                    "y": figures(means / 1e6),
                    "hover": "{name} {y} ms per batch",
                }
            )
    step = sum(totals.values())
    share = percent(totals["wait"] / step) if step > 0 else "an unknown part"
    if data:
        yield Figure(
            f"{key}-history",
            "Over the run",
            f"Wait and compute per batch over the run; waiting is {share} of the steps shown.",
            data,
            {
                "height": 280,
                "x": "seconds from the first batch shown",
                "y": "ms per batch",
                "form": "stack",
            },
        )
