"""The third screen: a lane a worker, and the loop's own, over the newest batches."""

from itertools import groupby

import numpy as np
from textual.content import Content

from ...profiler.base.arrays import Floats
from ...reports.words.timeline import Slices
from ...reports.words.units import UNKNOWN, duration, percent
from ..facts import Lane, Lanes, lanes
from ..snapshot import LoaderView
from .marks import BAD, DIM, FAIR, GOOD, MARK, SECOND, Piece, dim, fitted, line, lines, needs_loader

# Stage → (mark, style, what it is). The marks differ in shape, so that none needs its colour.
KINDS = {
    "fetch": ("█", MARK, "fetch"),
    "collate": ("▓", SECOND, "collate"),
    "pack": ("▒", FAIR, "hand-over"),
    "unpack": ("▒", FAIR, "hand-over"),
    "compute": ("█", GOOD, "compute"),
    "compute_device": ("█", GOOD, "compute"),
    "wait": ("░", BAD, "wait"),
    "h2d": ("▚", SECOND, "copy"),
    "stall": ("x", BAD, "no work"),
}
_HEAD = 26  # columns before a lane
IDLE = ("·", DIM, "idle")
_INSIDE_WAIT = ("fetch", "collate", "unpack")
_OF_DEVICES = {"h2d", "stall"}

# A cell is idle unless something filled at least this part of it; then the largest part names it.
_LEAST = 0.25


@needs_loader
def timeline(v: LoaderView, width: int) -> Content:
    """The lanes: who, how busy, and what it did when; and what the marks mean."""
    found = lanes(v.loader)
    columns = max(8, width - _HEAD)
    span = found.span_ns
    edges = np.linspace(found.end_ns - span, found.end_ns, columns + 1)
    titles = f"{'lane':<6}{'pid':>8}{'busy':>7}"
    axis = f"-{duration(span / 1e9)}"
    rows = [dim(fitted(titles, _HEAD) + axis + f"{'newest':>{max(7, columns - len(axis))}}")]
    for lane in found.lanes:
        who = f"{lane.name:<6}{lane.pid or UNKNOWN:>8}{percent(lane.busy_share):>7}"
        rows.append(Content.assemble(fitted(who, _HEAD), *_cells(lane, edges)))
    return lines([*rows, Content(""), _legend(found)])


def _legend(found: Lanes) -> Content:
    device = any(lane.spans.keys() & _OF_DEVICES for lane in found.lanes)
    kinds = [kind for stage, kind in KINDS.items() if device or stage not in _OF_DEVICES]
    parts: list[str | Piece] = []
    for mark, style, name in dict.fromkeys([*kinds, IDLE]):
        parts += [(mark * 2, style), f" {name}  "]
    return line(*parts)


def _cells(lane: Lane, edges: Floats) -> list[Piece]:
    """Each cell's largest kind, as runs of equal marks."""
    filled = {stage: _covered(lane.spans[stage], edges) for stage in KINDS if stage in lane.spans}
    if "wait" in filled:
        inside = sum(filled[stage] for stage in _INSIDE_WAIT if stage in filled)
        filled["wait"] = (filled["wait"] - inside).clip(0)
    kinds, shares = list(filled), np.stack(list(filled.values())) / (edges[1] - edges[0])
    marks = [
        KINDS[kinds[best]] if total >= _LEAST else IDLE
        for best, total in zip(shares.argmax(axis=0), shares.sum(axis=0), strict=True)
    ]
    return [(mark * len(list(run)), style) for (mark, style, _), run in groupby(marks)]


def _covered(spans: Slices, edges: Floats) -> Floats:
    """Time of these in each cell: what is covered up to an edge grows linearly inside of one."""
    order = np.argsort(spans.start_ns, kind="stable")
    starts = spans.start_ns[order].astype(np.float64)
    ends = starts + spans.length_ns[order]
    # One worker does one thing at a time: overlaps are errors of the clock, and are cut.
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    total = np.concatenate([[0.0], np.cumsum(ends - starts)])
    places = np.stack([starts, ends], axis=1).ravel()
    values = np.stack([total[:-1], total[1:]], axis=1).ravel()
    if not len(places):
        return np.zeros(len(edges) - 1)
    covered: Floats = np.diff(np.interp(edges, places, values))
    return covered
