"""The first screen: the verdict, the pace, the pipeline, the queue, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np
from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.words.advice_words import effect_text
from ...reports.words.plan_words import PlanRow, plan_rows
from ...reports.words.units import bar, count, duration, factor, micros, percent, plural, rate, span
from ..facts.flow import Node, limiting
from ..facts.flow import nodes as nodes_of
from ..facts.flow import queue as queue_of
from ..snapshot import LoaderView, Snapshot
from .advice import conclusion, gain_of
from .marks import (
    BAD,
    DIM,
    FAIR,
    GOOD,
    MARK,
    SECOND,
    VERDICTS,
    Values,
    course,
    dim,
    fitted,
    line,
    lines,
    text,
)
from .needs import needs_advice, needs_loader

WAITING = "Waiting for the first batch."
# Columns beside a graph; lines that one of the pace's graphs may have.
_HEAD, _MOST_LINES = 22, 8
# The queue, by the share of it that is ready: below these it is empty, or nearly.
_EMPTY, _LOW = 0.15, 0.4


def verdict(s: Snapshot, width: int, height: int) -> Content:
    """The verdict in a sentence, how sure it is, and what could be gained at most."""
    if s.loader is None:
        return line((text(s.problem) if s.problem else WAITING, "bold"))
    report, caught_up = s.loader.report, s.loader.caught_up
    style = VERDICTS[report.verdict]
    read = [f"older batches: {percent(caught_up)} read"] if caught_up < 1 else []
    found = (f"{report.verdict}  ", f"bold {style}")
    said = (text(report.basis.sentence), "bold")
    basis = " · ".join([*read, *_basis(report)])
    return lines([line(("● ", style), found, said), dim(basis)])


def _basis(report: LoaderReport) -> Iterator[str]:
    """In fewer words than a report says it: three lines must hold all of the verdict."""
    basis, headroom = report.basis, report.headroom
    if headroom is None:
        yield "headroom unknown"
    elif report.verdict != "too-short":
        yield f"headroom at most {factor(headroom)}" if headroom >= 1.005 else "no headroom"
    low, high = basis.stall_share_low, basis.stall_share_high
    spread = f", {span(low, high)}" if low is not None and high is not None else ""
    yield f"confidence {basis.confidence} ({count(basis.steady_batches)} steady{spread})"
    yield plural(report.batches, "batch", "batches")
    yield plural(report.epochs, "epoch", "epochs")


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
        found += _graph(label, rate(value), [most], history, MARK, room)
    found += _graph(share, percent(now.lost_share), [], lost[:newest], BAD, room, 1.0)
    return lines(found[: max(1, height)])


@needs_loader
def queue(v: LoaderView, width: int, height: int) -> Content:
    """Batches ready against room for them: an empty queue is a loop that waits for its workers."""
    q = queue_of(v.loader)
    if q.ready is None:
        why = "not measured" if q.room else "no workers: nothing is made ahead"
        return line("queue       ", (why, DIM))
    share = q.ready / q.room if q.room else 1.0
    style = BAD if share < _EMPTY else FAIR if share < _LOW else GOOD
    now, room = f"{q.ready:.1f} of {q.room or '?'}", (width, max(1, min(4, height)))
    notes = ["ready of prefetched", "empty: the loop waits", "full: workers ahead"]
    return lines(_graph("queue", now, notes, q.history, style, room, q.room))


def _graph(
    label: str,
    now: str,
    notes: list[str],
    history: Values,
    style: str,
    room: tuple[int, int],
    top: float | None = None,
) -> list[Content]:
    """A course over time beside its name and its value now; below these, notes."""
    first, *rest = course(history, room[0] - _HEAD, room[1], top)
    head = line(f"{label:<12}", (f"{now:>8}  ", "bold"), (first, style))
    pairs = zip_longest(notes[: len(rest)], rest, fillvalue="")
    return [head, *(line((f"{note:<{_HEAD}}", DIM), (row, style)) for note, row in pairs)]


@needs_loader
def pipeline(v: LoaderView, width: int, height: int) -> Content:
    """The stages left to right, each with time, share, how busy it is, and the limiting one
    marked."""
    nodes = nodes_of(v.report)
    arrow = " → " if width >= 110 else "→"
    cell = (width - len(arrow) * (len(nodes) - 1)) // len(nodes)
    limit = limiting(v.report, nodes)
    rows = zip(*(_cells(node, node.name == limit, cell) for node in nodes), strict=True)
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


@needs_advice
def advice(report: LoaderReport, width: int, height: int) -> Content:
    """Recommendations, best first, one line each; with their reasons where there is room."""
    rows, said = plan_rows(report), conclusion(report)
    shown = [_line(row, width) for row in rows]
    reasons = [_reason(row, width) for row in rows]
    if height > 2 * len(rows):
        shown = [each for pair in zip(shown, reasons, strict=True) for each in pair]
    if height > len(shown):
        shown.append(line((said, "bold" if rows else DIM)))
    if len(shown) > height > 0:
        more = len(shown) - height + 1
        shown = [*shown[: height - 1], dim(f"… and {more} more: press 2")]
    return lines(shown)


def _line(row: PlanRow, width: int) -> Content:
    said = ": ".join(filter(None, (text(row.advice.title), row.left_out)))
    return line(
        (f"{row.number:>2} ", DIM),
        (f"{gain_of(row.advice):<15}", DIM if row.left_out else f"bold {GOOD}"),
        (f"{text(row.advice.rule, 20):<20} ", SECOND),
        fitted(said, width - 40),
    )


def _reason(row: PlanRow, width: int) -> Content:
    tried = row.advice.measured_range is not None
    why = text(effect_text(row.advice) if tried else row.advice.why)
    return dim(f"   {fitted(why, width - 3)}")


@needs_loader
def waiting(v: LoaderView, width: int, height: int) -> Content:
    """Where the waiting came from, largest first."""
    found = v.report.waiting
    if found is None or found.total_s <= 0:
        return dim("no waiting was recorded")
    causes = sorted(found.causes.items(), key=lambda item: -item[1].share)[:height]
    return lines(
        [
            line(
                f"{text(name, 13):<13}",
                (f"{duration(cause.seconds):>11}", DIM),
                (f"{percent(cause.share):>8}  ", "bold"),
                (bar(cause.share, min(40, width - 34)), BAD),
            )
            for name, cause in causes
        ]
    )
