"""The plots of one loader: its time line, and how it went over the run."""

from collections.abc import Iterator

import numpy as np

from ...profiler.store.run.run import LoaderRun
from ..words.curves import resampled
from ..words.glosses import GLOSSES, label_of
from ..words.timeline import Track, Window
from ..words.units import percent
from .html_plot import COLORS, GREY, Figure, Trace, figures

# A few hundred batches are more than a screen shows and few enough for any browser to draw and
# zoom.
WINDOW_BATCHES = 200
SHOWN_AT_FIRST = 16
MAX_TRACKS = 40
BUCKETS = 300


def loader_figures(key: str, columns: LoaderRun | None) -> Iterator[Figure]:
    """The plots there is something to draw for; `key` makes their ids unique in the page."""
    if columns and columns.batches.rows:
        window = Window(columns, WINDOW_BATCHES)
        tracks = window.tracks()
        if tracks:
            yield _time_line(key, window, tracks)
        yield from _history(key, columns)


def _time_line(key: str, window: Window, tracks: tuple[Track, ...]) -> Figure:
    # Sending is drawn on its worker's row.
    names = [track.name.removesuffix(" sending") for track in tracks]
    rows = list(dict.fromkeys(names))[:MAX_TRACKS]
    begin = int(window.start.min())
    data: dict[str, Trace] = {}
    for track, row in zip(tracks, names, strict=True):
        for slices in track.slices if row in rows else ():
            stage, lengths_ms = slices.stage, slices.length_ns / 1e6
            made: Trace = {name: [] for name in ("x", "y", "base", "facts")}
            made |= {"name": label_of(stage), "color": COLORS.get(stage, GREY)}
            trace = data.setdefault(stage, made | {"hover": "batch {0}\n{name} {1} ms"})
            # Packing overlaps fetching: both show.
            trace["size"] = 0.3 if track.kind == "sending" else 0.8
            trace["x"] += figures(lengths_ms)
            trace["base"] += figures((slices.start_ns - begin) / 1e6, 8)
            trace["y"] += [row] * len(slices.row)
            trace["facts"] += zip(slices.row.tolist(), figures(lengths_ms, 4), strict=True)
    first = max(0, len(window.rows) - SHOWN_AT_FIRST)
    shown = [(end - begin) / 1e6 for end in (int(window.start[first]), window.end)]
    note = " The places of slices on the pin thread and the device are the likely ones."
    return Figure(
        f"{key}-timeline",
        f"Time line of the newest {len(window.rows)} batches",
        f"Time runs from left to right; rows: {', '.join(rows)}. A batch is fetched and collated "
        "in a worker, packed, and waited for in the training loop. Drag to zoom, double-click to "
        f"see all.{'' if all(track.exact for track in tracks) else note}",
        [data[name] for name in GLOSSES if name in data],  # later ones lie above
        {
            "height": 130 + 30 * len(rows),
            "x": "ms from the first of these batches",
            "rows": rows,
            "range": figures(shown, 6),
        },
    )


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
