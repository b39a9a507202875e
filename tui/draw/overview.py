"""The first screen: the verdict, the pace, the pipeline, the queue, and what to change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.words.advice_words import effect_text
from ...reports.words.findings import what_costs
from ...reports.words.plan_words import PlanRow, plan_rows
from ...reports.words.units import bar, count, duration, factor, percent, plural, rate, span
from ..snapshot import LoaderView, Snapshot
from .advice import conclusion, gain_of
from .marks import (
    BAD,
    DIM,
    GOOD,
    MARK,
    SECOND,
    VERDICTS,
    dim,
    fitted,
    graph,
    line,
    lines,
    text,
)
from .needs import needs_advice, needs_loader

WAITING = "Waiting for the first batch."
_MOST_LINES = 8  # of one of the pace's graphs


def verdict(s: Snapshot, width: int, height: int) -> Content:
    """The verdict in a sentence, how sure it is, and what free loading would gain."""
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
        yield f"headroom about {factor(headroom)}" if headroom >= 1.005 else "no headroom"
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
        found += graph(label, rate(value), [most], history, MARK, room)
    found += graph(share, percent(now.lost_share), [], lost[:newest], BAD, room, 1.0)
    return lines(found[: max(1, height)])


@needs_advice
def advice(report: LoaderReport, width: int, height: int) -> Content:
    """Recommendations, best first, one line each; with their reasons where there is room."""
    rows, said = plan_rows(report), conclusion(report)
    each = 2 if height > 2 * len(rows) else 1
    shown = [part for row in rows for part in _lines(row, width)[:each]]
    costs = what_costs(report)
    if costs is not None and height > len(shown):
        shown.insert(0, line((text(costs), BAD)))
    if height > len(shown):
        shown.append(line((said, "bold" if rows else DIM)))
    if len(shown) > height > 0:
        more = len(shown) - height + 1
        shown = [*shown[: height - 1], dim(f"… and {more} more: press 2")]
    return lines(shown)


def _lines(row: PlanRow, width: int) -> tuple[Content, Content]:
    """What to change and what it gains; why."""
    advice = row.advice
    why = advice.why if advice.measured_range is None else effect_text(advice)
    said = ": ".join(filter(None, (text(advice.title), row.left_out)))
    first = line(
        (f"{row.number:>2} ", DIM),
        (f"{gain_of(advice):<15}", DIM if row.left_out else f"bold {GOOD}"),
        (f"{text(advice.rule, 20):<20} ", SECOND),
        fitted(said, width - 40),
    )
    return first, dim(f"   {fitted(text(why), width - 3)}")


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
