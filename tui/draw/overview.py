"""The first screen: the verdict, the pace, the pipeline, the queue, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.words.advice_words import effect_text
from ...reports.words.plan_words import PlanRow, plan_rows
from ...reports.words.units import bar, count, duration, factor, micros, percent, plural, rate, span
from ..facts.flow import Node
from ..snapshot import LoaderView, Snapshot
from .advice import conclusion, gain_of
from .marks import BAD, DIM, FAIR, GOOD, MARK, SECOND, VERDICTS, course, fitted, line, lines, text
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
    return lines([line(("● ", style), found, said), line((basis, DIM))])


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
    lost = [lost / busy if busy else None for lost, busy in zip(c.lost_ns, c.busy_ns, strict=True)]
    each, found = max(1, min(_MOST_LINES, height // 3)), []
    for label, value, counts in (
        ("batches/s", now.batches_s, c.batches),
        ("samples/s", now.samples_s, c.samples),
    ):
        history = (counts[:newest] / seconds).tolist()
        most = f"at most {rate(max(history, default=None))}"
        drawn = course(history, width - _HEAD, each)
        found += _graph(label, rate(value), [f"{most:>20}"], drawn, MARK)
    drawn = course(lost[:newest], width - _HEAD, each, 1.0)
    found += _graph(share, percent(now.lost_share), [], drawn, BAD)
    return lines(found[: max(1, height)])


@needs_loader
def queue(v: LoaderView, width: int, height: int) -> Content:
    """Batches ready against room for them: an empty queue is a loop that waits for its workers."""
    q = v.queue
    if q.ready is None:
        why = "not measured" if q.room else "no workers: nothing is made ahead"
        return line("queue       ", (why, DIM))
    share = q.ready / q.room if q.room else 1.0
    style = BAD if share < _EMPTY else FAIR if share < _LOW else GOOD
    drawn = course(q.history, width - _HEAD, max(1, min(4, height)), q.room)
    notes = ["ready of prefetched", "empty: the loop waits", "full: workers ahead"]
    return lines(_graph("queue", f"{q.ready:.1f} of {q.room or '?'}", notes, drawn, style))


def _graph(label: str, now: str, notes: list[str], drawn: list[str], style: str) -> list[Content]:
    """A course over time beside its name and its value now; below them, notes."""
    first, *rest = drawn
    head = line(f"{label:<12}", (f"{now:>8}  ", "bold"), (first, style))
    pairs = zip_longest(notes[: len(rest)], rest, fillvalue="")
    return [head, *(line((f"{note:<{_HEAD}}", DIM), (row, style)) for note, row in pairs)]


@needs_loader
def pipeline(v: LoaderView, width: int, height: int) -> Content:
    """The stages left to right, each with time, share, how busy it is, and the limiting one
    marked."""
    nodes = v.nodes
    arrow = " → " if width >= 110 else "→"
    cell = (width - len(arrow) * (len(nodes) - 1)) // len(nodes)
    rows = zip(*(_cells(node, cell) for node in nodes), strict=True)
    between = Content.styled(arrow, DIM), Content(" " * len(arrow))
    return lines([between[number > 0].join(row) for number, row in enumerate(rows)])


def _cells(node: Node, cell: int) -> list[Content]:
    """A stage from above: name, time, share, how busy, and the mark of the limiting one."""
    style = MARK if not node.limits else GOOD if node.name == "compute" else BAD
    known = node.mean_us is not None
    plain = "" if known else DIM
    strong = f"bold {style}" if node.limits else "bold" if known else DIM
    share = f"{percent(node.share)} of step" if cell > 15 else percent(node.share)
    reason = fitted(text(node.reason), cell - 1).strip()
    mark = f"{percent(node.used_share)} used" if known else reason
    if node.limits:
        mark = f"▲ limits, {mark}" if cell >= 14 else "▲ limits"
    parts = (
        (node.name, strong),
        (micros(node.mean_us), plain),
        (share if known else "", plain),
        (bar(node.used_share, cell - 2), style),
        (mark, strong if node.limits else DIM),
    )
    return [Content.styled(part.center(cell), style) for part, style in parts]


@needs_advice
def advice(report: LoaderReport, width: int, height: int) -> Content:
    """Recommendations, best first, one line each; with their reasons where there is room."""
    rows, said = plan_rows(report), conclusion(report)
    shown = [_line(row, width) for row in rows]
    reasons = [_reason(row, width) for row in rows]
    room = max(1, height)
    if room > 2 * len(rows):
        shown = [each for pair in zip(shown, reasons, strict=True) for each in pair]
    if room > len(shown):
        shown.append(line((said, "bold" if rows else DIM)))
    if len(shown) > room:
        shown = [*shown[: room - 1], line((f"… and {len(shown) - room + 1} more: press 2", DIM))]
    return lines(shown)


def _line(row: PlanRow, width: int) -> Content:
    said = ": ".join(filter(None, (text(row.advice.title), row.left_out)))
    return line(
        (f"{row.number:>2} ", DIM),
        (f"{gain_of(row.advice):<15}", DIM if row.left_out else f"bold {GOOD}"),
        (f"{text(row.advice.rule, 20):<20} ", SECOND),
        fitted(said, max(8, width - 40)),
    )


def _reason(row: PlanRow, width: int) -> Content:
    tried = row.advice.measured_range is not None
    why = text(effect_text(row.advice) if tried else row.advice.why)
    return line((f"   {fitted(why, max(8, width - 3))}", DIM))


@needs_loader
def waiting(v: LoaderView, width: int, height: int) -> Content:
    """Where the waiting came from, largest first."""
    found = v.report.waiting
    if found is None or found.total_s <= 0:
        return line(("no waiting was recorded", DIM))
    causes = sorted(found.causes.items(), key=lambda item: -item[1].share)[: max(1, height)]
    return lines(
        [
            line(
                f"{text(name, 13):<13}",
                (f"{duration(cause.seconds):>11}", DIM),
                (f"{percent(cause.share):>8}  ", "bold"),
                (bar(cause.share, max(4, min(40, width - 34))), BAD),
            )
            for name, cause in causes
        ]
    )
