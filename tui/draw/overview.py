"""The first screen: the verdict, the pace, what to change, and how batches flow: the pipeline from
index to compute, and the queue between workers and loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.document.advice import card
from ...reports.document.blocks import sentences
from ...reports.document.stages import waiting_blocks
from ...reports.words.advice_words import plan_rows
from ...reports.words.inside import what_costs
from ...reports.words.sentences import headroom_sentence
from ...reports.words.units import bar, micros, percent, plural, rate
from ..facts import NOW_NS
from ..snapshot import LoaderView, Snapshot
from .advice import conclusion
from .marks import (
    BAD,
    DIM,
    FAIR,
    GOOD,
    MARK,
    VERDICTS,
    blocks,
    dim,
    fitted,
    graph,
    line,
    lines,
    needs_advice,
    needs_loader,
    text,
)

WAITING = "Waiting for the first batch."
_MOST_LINES = 8  # of one of the pace's graphs

# The queue, by the share of it that is ready: below these it is empty, or nearly.
_EMPTY, _LOW = 0.15, 0.4
# Node → the stages it sums up.
_NODES = {
    "index": ("index",),
    "fetch": ("fetch",),
    "collate": ("collate",),
    "hand-over": ("pack", "unpack"),
    "pin": ("pin",),
    "copy": ("h2d",),
    "compute": ("compute",),
}
_IN_WORKERS = ("fetch", "collate", "pack")


def verdict(s: Snapshot, width: int, height: int) -> Content:
    """The verdict in a sentence, how sure it is, and what free loading would gain."""
    if not s.loader:
        return line((text(s.problem) if s.problem else WAITING, "bold"))
    report, caught_up = s.loader.report, s.loader.caught_up
    style = VERDICTS[report.verdict]
    basis = [f"Older batches: {percent(caught_up)} read."] if caught_up < 1 else []
    basis += [headroom_sentence(report)] if report.verdict != "too-short" else []
    basis.append(f"{plural(report.batches, 'batch', 'batches')}, {plural(report.epochs, 'epoch')}.")
    found = (f"{report.verdict}  ", f"bold {style}")
    said = (text(report.basis.sentence), "bold")
    return lines([line(("● ", style), found, said), dim(" ".join(basis))])


@needs_loader
def pace(v: LoaderView, width: int, height: int) -> Content:
    """Batches a second, samples a second and the stall share: now, and their course."""
    now, c = v.pace, v.course
    seconds, newest = c.step_ns / 1e9, max(1, len(c.batches) - 1)  # whose step is not over yet
    share = "stall share" if v.report.basis.lost == "stall" else "wait share"
    lost = c.lost_ns / np.where(c.busy_ns > 0, c.busy_ns, np.nan)
    room, found = (width, max(1, min(_MOST_LINES, height // 3))), []
    for label, value, counts in (
        ("batches/s", now.batches_s, c.batches),
        ("samples/s", now.samples_s, c.samples),
    ):
        history = counts[:newest] / seconds
        most = f"{f'at most {rate(history.max(initial=0.0))}':>20}"
        found += graph(label, rate(value), [most], history, MARK, room)
    found += graph(share, percent(now.lost_share), [], lost[:newest], BAD, room, 1.0)
    return lines(found[: max(1, height)])


@needs_advice
def advice(report: LoaderReport, width: int, height: int) -> Content:
    """What costs, then the recommendations, best first, and what they come to."""
    rows = plan_rows(report)
    costs, said = sentences([what_costs(report)], "bad", True), conclusion(report)
    room = max(1, height - len(costs))
    shown, more = rows[:room], ""
    if len(rows) > room:
        shown = rows[: room - 1]
        more = f"… and {len(rows) - len(shown)} more: press 2"
    ending = sentences([more, "" if more else said], "strong" if rows else "dim", True)
    return blocks([*costs, *map(card, shown), *ending], width)


@needs_loader
def waiting(v: LoaderView, width: int, height: int) -> Content:
    """Where the waiting came from, largest first."""
    found = v.report.waiting
    if not found or found.total_s <= 0:
        return dim("no waiting was recorded")
    return blocks(waiting_blocks(v.report), width)


@dataclass(frozen=True)
class Node:
    """One stage of the pipeline. `share` is of the loop's time; `used_share` of what does it
    (workers, loop, device).

    A stage nobody measured has a `reason` instead of figures.
    """

    name: str
    mean_us: float | None = None
    share: float | None = None
    used_share: float | None = None
    reason: str | None = None


@needs_loader
def queue(v: LoaderView, width: int, height: int) -> Content:
    """Batches ready, of those that may be made ahead: an empty queue is a loop that waits for its
    workers."""
    ready, t = v.loader.batches["ready"], v.loader.batches["t_ns"]
    t, ready = t[ready >= 0], ready[ready >= 0]
    room = v.loader.num_workers * v.loader.prefetch_factor
    if not len(t):
        why = "not measured" if room else "no workers: nothing is made ahead"
        return line("queue       ", (why, DIM))
    now = float(ready[t >= t[-1] - NOW_NS].mean())
    share = now / room if room else 1.0
    style = BAD if share < _EMPTY else FAIR if share < _LOW else GOOD
    notes = ["ready of prefetched", "empty: the loop waits", "full: workers ahead"]
    size = width, max(1, min(4, height))
    return lines(graph("queue", f"{now:.1f} of {room or '?'}", notes, ready, style, size, room))


@needs_loader
def pipeline(v: LoaderView, width: int, height: int) -> Content:
    """The stages left to right, each with time, share, how busy it is, and the limiting one
    marked."""
    found = nodes(v.report)
    arrow = " → " if width >= 110 else "→"
    cell = (width - len(arrow) * (len(found) - 1)) // len(found)
    limit = limiting(v.report, found)
    rows = zip(*(_cells(node, node.name == limit, cell) for node in found), strict=True)
    between = Content.styled(arrow, DIM), Content(" " * len(arrow))
    return lines([between[number > 0].join(row) for number, row in enumerate(rows)])


def _cells(node: Node, limits: bool, cell: int) -> list[Content]:
    """A stage from above: name, time, share, how busy, and the mark of the limiting one."""
    style = MARK if not limits else GOOD if node.name == "compute" else BAD
    known = node.mean_us is not None
    plain = "" if known else DIM
    strong = f"bold {style}" if limits else "bold" if known else DIM
    share = f"{percent(node.share)} of step" if cell > 15 else percent(node.share)
    reason = fitted(text(node.reason), cell - 1).strip()
    mark = f"{percent(node.used_share)} used" if known else reason
    if limits:
        mark = f"▲ limits, {mark}" if cell >= 14 else "▲ limits"
    parts = (
        (node.name, strong),
        (micros(node.mean_us), plain),
        (share if known else "", plain),
        (bar(node.used_share, cell - 2), style),
        (mark, strong if limits else DIM),
    )
    return [Content.styled(part.center(cell), style) for part, style in parts]


def nodes(report: LoaderReport) -> list[Node]:
    """The seven stages, in the order of the pipeline."""
    return [_node(name, parts, report) for name, parts in _NODES.items()]


def _node(name: str, parts: tuple[str, ...], report: LoaderReport) -> Node:
    stages = {part: report.stages[part] for part in parts if part in report.stages}
    known = {part: stage for part, stage in stages.items() if stage.mean_us is not None}
    if not known:
        reasons = (stage.reason for stage in stages.values() if stage.reason)
        return Node(name, reason=next(reasons, "not measured"))
    workers = report.config.get("num_workers")
    several = max(1, workers) if isinstance(workers, int) else 1
    shares = {part: stage.share or 0.0 for part, stage in known.items()}
    # Workers pack and the loop unpacks: the busier of the two counts.
    used = max(share / (several if part in _IN_WORKERS else 1) for part, share in shares.items())
    mean_us = sum(stage.mean_us or 0.0 for stage in known.values())
    return Node(name, mean_us, sum(shares.values()), min(1.0, used))


def limiting(report: LoaderReport, found: list[Node]) -> str | None:
    """The stage that limits: the report's own answer, or by the verdict computing or the busiest
    stage of loading."""
    if report.verdict == "too-short":
        return None
    if report.verdict == "compute-bound":
        return "compute"
    limit = "fetch" if report.limit == "workers" else report.limit
    known = {node.name: node.used_share for node in found if node.name != "compute"}
    busiest = max(known, key=lambda name: known[name] or 0.0)
    named = (name for name in known if limit in _NODES[name])
    return next(named, busiest if known[busiest] else None)
