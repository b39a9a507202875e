"""The third screen: a lane a worker, and the loop's own, over the newest batches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from textual.content import Content

from ...reports.words.units import UNKNOWN, duration, percent, size
from ..facts.lanes import BLOCKED, COLLATE, COMPUTE, COPY, FETCH, HAND_OVER, STILL, WAIT, Lane
from ..snapshot import Snapshot
from .marks import BAD, DIM, FAIR, GOOD, MARK, SECOND, Part, fitted, line, lines

# Kind → (mark, style, what it is). The marks differ in shape, so that they can be told apart
# without colour.
KINDS: dict[int, tuple[str, str, str]] = {
    FETCH: ("█", MARK, "fetch"),
    COLLATE: ("▓", SECOND, "collate"),
    HAND_OVER: ("▒", FAIR, "hand-over"),
    COMPUTE: ("█", GOOD, "compute"),
    WAIT: ("░", BAD, "wait"),
    BLOCKED: ("!", BAD, "head of line"),
    COPY: ("▚", SECOND, "copy"),
    STILL: ("x", BAD, "no work"),
}
_OF_DEVICES = (COPY, STILL)
IDLE = ("·", DIM)

# A cell is idle unless something filled at least this part of it; then the largest part names it.
_LEAST = 0.25

ZOOMS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def summary(s: Snapshot, width: int, height: int) -> Content:
    """Out-of-order and head-of-line in a sentence each."""
    found = s.loader.lanes if s.loader is not None else None
    if found is None:
        return line(("no batches yet", DIM))
    if found.reason is not None:
        return line((found.reason, DIM))
    overtaken, blocked = found.overtaken_share, found.blocked_share
    style = BAD if (blocked or 0) >= 0.1 else ""
    return lines(
        [
            line(
                ("out of order  ", DIM),
                (percent(overtaken), "bold"),
                " of batches were finished after a later one",
            ),
            line(
                ("head of line  ", DIM),
                (f"{duration(found.blocked_s)}", f"bold {style}".strip()),
                f" of waiting ({percent(blocked)}) while a later batch lay ready",
            ),
        ]
    )


def timeline(s: Snapshot, width: int, height: int, zoom: float = 1.0) -> Content:
    """The lanes: who, how busy, CPU and memory, and what it did when."""
    found = s.loader.lanes if s.loader is not None else None
    if found is None:
        return line(("no batches yet", DIM))
    wide = width >= 110
    head = 45 if wide else 32
    columns = max(8, width - head)
    span = max(1_000, int(found.span_ns / zoom))
    begin = found.end_ns - span
    titles = f"{'lane':<6}{'pid':>8}{'busy':>7}{'cpu':>6}" + (f"{'memory':>16}" if wide else "")
    rows = [line((fitted(titles, head), DIM), (_axis(columns, span), DIM))]
    edges = np.linspace(begin, found.end_ns, columns + 1)
    rows += [
        Content.assemble(fitted(_who(lane, wide), head), *_cells(lane, edges))
        for lane in found.lanes
    ]
    return lines(rows)


def legend(s: Snapshot, width: int, height: int) -> Content:
    """What the marks mean."""
    parts: list[str | Part] = []
    found = s.loader.lanes if s.loader is not None else None
    device = found is not None and any(lane.device for lane in found.lanes)
    for mark, style, name in (
        each for kind, each in KINDS.items() if device or kind not in _OF_DEVICES
    ):
        parts += [(mark * 2, style), f" {name}  "]
    parts += [(IDLE[0] * 2, IDLE[1]), " idle"]
    return line(*parts)


def _who(lane: Lane, wide: bool) -> str:
    name = lane.device or ("loop" if lane.worker is None else f"w{lane.worker}")
    cpu = f"{lane.cpu_cores:.2f}" if lane.cpu_cores is not None else UNKNOWN
    memory = size(lane.memory_bytes)
    pid = lane.pid if lane.pid is not None else UNKNOWN
    found = f"{name:<6}{pid:>8}{percent(lane.busy_share):>7}{cpu:>6}"
    return found + (f"{memory + ' ' + lane.memory_kind:>16.16}" if wide else "")


def _axis(columns: int, span_ns: int) -> str:
    left, right = f"-{duration(span_ns / 1e9)}", "newest"
    return left + " " * max(1, columns - len(left) - len(right)) + right


def _cells(lane: Lane, edges: npt.NDArray[np.float64]) -> list[Part]:
    """Each cell's largest kind, as runs of equal marks."""
    width = edges[1] - edges[0]
    kinds = [kind for kind in KINDS if np.any(lane.kinds == kind)]
    if not kinds:
        return [(IDLE[0] * (len(edges) - 1), IDLE[1])]
    filled = np.stack([_covered(lane, kind, edges) for kind in kinds]) / width
    best = np.argmax(filled, axis=0)
    marks = [
        kinds[n] if total >= _LEAST else -1
        for n, total in zip(best, filled.sum(axis=0), strict=True)
    ]
    parts: list[Part] = []
    start = 0
    for at in range(1, len(marks) + 1):
        if at == len(marks) or marks[at] != marks[start]:
            mark, style = KINDS[marks[start]][:2] if marks[start] >= 0 else IDLE
            parts.append((mark * (at - start), style))
            start = at
    return parts


def _covered(lane: Lane, kind: int, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Time of this kind in each cell: what is covered up to an edge grows linearly inside an
    interval."""
    mine = lane.kinds == kind
    starts, ends = lane.starts[mine].astype(np.float64), lane.ends[mine].astype(np.float64)
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    # One worker does one thing at a time: overlaps are errors of the clock, and are cut.
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    lengths = (ends - starts).clip(0)
    total = np.concatenate([[0.0], np.cumsum(lengths)])
    places = np.stack([starts, starts + lengths], axis=1).ravel()
    values = np.stack([total[:-1], total[1:]], axis=1).ravel()
    covered: npt.NDArray[np.float64] = np.diff(np.interp(edges, places, values))
    return covered
