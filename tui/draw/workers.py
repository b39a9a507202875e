"""The third screen: a lane a worker, and the loop's own, over the newest batches; and the ranks of
the job as a heat map."""

from __future__ import annotations

from itertools import groupby
from statistics import median

import numpy as np
import numpy.typing as npt
from textual.content import Content

from ...reports.words.timeline import Slices
from ...reports.words.units import UNKNOWN, duration, percent, size
from ..facts import BLOCKED, Lane
from ..snapshot import LoaderView, Snapshot
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
    BLOCKED: ("!", BAD, "head of line"),
    "h2d": ("▚", SECOND, "copy"),
    "stall": ("x", BAD, "no work"),
}
IDLE = ("·", DIM, "idle")
_INSIDE_WAIT = ("fetch", "collate", "unpack", BLOCKED)
_OF_DEVICES = {"h2d", "stall"}

# A cell is idle unless something filled at least this part of it; then the largest part names it.
_LEAST = 0.25
# From this share of the waiting on, the order of batches is worth a look.
_NOTED = 0.1

ZOOMS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

Floats = npt.NDArray[np.float64]


@needs_loader
def summary(v: LoaderView, width: int, height: int) -> Content:
    """Out-of-order and head-of-line in a sentence each."""
    found = v.lanes
    if not found.lanes:
        return dim("no batches yet")
    if found.overtaken_share is None:
        return dim("no workers: the loop does everything itself")
    style = f"bold {BAD}" if (found.blocked_share or 0) >= _NOTED else "bold"
    overtaken, blocked = percent(found.overtaken_share), percent(found.blocked_share)
    late = " of batches finished after a later one"
    held = " of the wait while a later batch was ready"
    order = line(("out of order  ", DIM), (overtaken, "bold"), late)
    return lines([order, line(("head of line  ", DIM), (blocked, style), held)])


@needs_loader
def timeline(v: LoaderView, width: int, height: int, zoom: float = 1.0) -> Content:
    """The lanes: who, how busy, CPU and memory, and what it did when."""
    found, wide = v.lanes, width >= 110
    head = 45 if wide else 32
    columns = max(8, width - head)
    span = max(1_000, int(found.span_ns / zoom))
    edges = np.linspace(found.end_ns - span, found.end_ns, columns + 1)
    titles = f"{'lane':<6}{'pid':>8}{'busy':>7}{'cpu':>6}" + (f"{'memory':>16}" if wide else "")
    axis = f"-{duration(span / 1e9)}"
    rows = [dim(fitted(titles, head) + axis + f"{'newest':>{max(7, columns - len(axis))}}")]
    rows += [
        Content.assemble(fitted(_who(lane, wide), head), *_cells(lane, edges))
        for lane in found.lanes
    ]
    return lines(rows)


@needs_loader
def legend(v: LoaderView, width: int, height: int) -> Content:
    """What the marks mean."""
    device = any(lane.spans.keys() & _OF_DEVICES for lane in v.lanes.lanes)
    kinds = [kind for stage, kind in KINDS.items() if device or stage not in _OF_DEVICES]
    parts: list[str | Piece] = []
    for mark, style, name in dict.fromkeys([*kinds, IDLE]):
        parts += [(mark * 2, style), f" {name}  "]
    return line(*parts)


def _who(lane: Lane, wide: bool) -> str:
    cpu = f"{lane.cpu_cores:.2f}" if lane.cpu_cores is not None else UNKNOWN
    memory = f"{size(lane.memory[0])} {lane.memory[1]}" if lane.memory else UNKNOWN
    found = f"{lane.name:<6}{lane.pid or UNKNOWN:>8}{percent(lane.busy_share):>7}{cpu:>6}"
    return found + (f"{memory:>16.16}" if wide else "")


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


# From which share of the step on: mark, style and what they mean. Marks differ in shape, so that
# none needs its colour. Below 0 is what is not known.
_HEAT: tuple[tuple[float, str, str, str], ...] = (
    (0.5, "██", BAD, "from 50 %"),
    (0.1, "▓▓", FAIR, "from 10 %"),
    (0.05, "▒▒", GOOD, "from 5 %"),
    (0.0, "░░", GOOD, "below 5 %"),
    (-1.0, "··", DIM, "not known"),
)
_LOOKED_AT = ("◂", f"bold {MARK}")
_CELL, _LABEL = 3, 7


def heat_map(s: Snapshot, width: int, height: int) -> Content:
    """Who waits longest, in a sentence; then the cells, a line for each few ranks, the one looked
    at marked."""
    known = [(each.share, -each.rank) for each in s.ranks if each.share is not None]
    if not known:
        return dim("no steps of the ranks yet")
    share, rank = max(known)
    head = line(
        f"Rank {-rank} waits longest for data: ",
        (percent(share), f"bold {_heat(share)[1]}"),
        f" of its step time; median {percent(median(each for each, _ in known))}",
    )
    room = max(1, (width - _LABEL) // _CELL)
    a_line = next((many for many in (64, 32, 16, 8) if many <= room), room)
    looked_at = s.choice.rank if s.choice else None
    rows = []
    for start in range(0, len(s.ranks), a_line):
        parts: list[str | Piece] = [(f"{s.ranks[start].rank:>{_LABEL - 2}}  ", DIM)]
        for each in s.ranks[start : start + a_line]:
            parts += [_heat(each.share), _LOOKED_AT if each.rank == looked_at else " "]
        rows.append(line(*parts))
    legend: list[str | Piece] = [" " * _LABEL]
    for _, mark, style, meaning in _HEAT[::-1]:
        legend += [(mark, style), f" {meaning}  "]
    return lines([head, *rows, line(*legend, _LOOKED_AT, " looked at")])


def _heat(share: float | None) -> Piece:
    level = -1.0 if share is None else share
    return next((mark, style) for least, mark, style, _ in _HEAT if level >= least)
