"""The first screen: the verdict, the pace, the pipeline, the queue, and what to change."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...reports.words.advice_words import effect_text
from ...reports.words.units import bar, count, duration, factor, micros, percent, rate
from ..facts.flow import Node
from ..snapshot import AdviceView, Snapshot
from .marks import BAD, DIM, FAIR, GOOD, MARK, SECOND, VERDICTS, course, fitted, line, lines, text

WAITING = "Waiting for the first batch: nothing has been recorded yet."


def verdict(s: Snapshot, width: int, height: int) -> Content:
    """The verdict in a sentence, how sure it is, and what could be gained at most."""
    if s.loader is None:
        return line(((s.problem and text(s.problem)) or WAITING, "bold"))
    report = s.loader.report
    style = VERDICTS[report.verdict]
    first = line(
        ("● ", style),
        (report.verdict, f"bold {style}"),
        "  ",
        (text(report.basis.sentence), "bold"),
    )
    return lines([first, line((_basis(s, report), DIM))])


def _basis(s: Snapshot, report: LoaderReport) -> str:
    basis = report.basis
    assert s.loader is not None
    parts = []
    if s.loader.caught_up < 1:
        parts.append(f"older batches: {s.loader.caught_up:.0%} read")
    if report.verdict != "too-short":
        if report.headroom is None:
            parts.append("headroom unknown")
        else:
            parts.append(
                "no headroom"
                if report.headroom < 1.005
                else f"headroom at most {factor(report.headroom)}"
            )
    low, high = basis.stall_share_low, basis.stall_share_high
    spread = (
        f", {percent(low).removesuffix(' %')}–{percent(high)}"
        if low is not None and high is not None
        else ""
    )
    parts.append(f"confidence {basis.confidence} ({count(basis.steady_batches)} steady{spread})")
    parts.append(f"{count(report.batches)} batches")
    parts.append(f"{report.epochs} {'epoch' if report.epochs == 1 else 'epochs'}")
    return " · ".join(parts)


def pace(s: Snapshot, width: int, height: int) -> Content:
    """Batches a second, samples a second and the stall share: now, and their course."""
    if s.loader is None:
        return line(("–", DIM))
    now, c = s.loader.pace, s.loader.course
    seconds = c.step_ns / 1e9
    report = s.loader.report
    rows = [
        ("batches/s", rate(now.batches_s), [b / seconds for b in c.batches], MARK, None),
        ("samples/s", rate(now.samples_s), [n / seconds for n in c.samples], MARK, None),
        (
            "stall share" if report.basis.lost == "stall" else "wait share",
            percent(now.lost_share),
            [
                lost / busy if busy else None
                for lost, busy in zip(c.lost_ns, c.busy_ns, strict=True)
            ],
            BAD,
            1.0,
        ),
    ]
    each = max(1, min(8, height // len(rows)))
    graph = max(4, width - 22)
    found = []
    for label, value, history, style, top in rows:
        drawn = course(history[:-1] or history, graph, each, top)
        for number, piece in enumerate(drawn):
            if number == 0:
                found.append(line(f"{label:<12}", (f"{value:>8}  ", "bold"), (piece, style)))
            else:
                most = (
                    f"at most {rate(max(history[:-1] or history))}"
                    if number == 1 and top is None and history
                    else ""
                )
                found.append(line((f"{most:>20}  ", DIM), (piece, style)))
    return lines(found[:height] if height > 0 else found)


def queue(s: Snapshot, width: int, height: int) -> Content:
    """Batches ready against room for them: an empty queue is a loop that waits for its workers."""
    if s.loader is None:
        return line(("–", DIM))
    q = s.loader.queue
    if q.ready is None:
        return line(("queue       ", ""), (q.reason or "not measured", DIM))
    room = str(q.room) if q.room is not None else "?"
    share = q.ready / q.room if q.room else None
    style = (
        BAD
        if share is not None and share < 0.15
        else FAIR
        if share is not None and share < 0.4
        else GOOD
    )
    graph = max(4, width - 22)
    top = float(q.room) if q.room else None
    drawn = course(q.history, graph, max(1, min(4, height)), top)
    head = line(
        ("queue       ", ""),
        (f"{q.ready:>3.1f} of {room:<2}"[:8].rjust(8), "bold"),
        "  ",
        (drawn[0], style),
    )
    glosses = ("ready of prefetched", "empty: the loop waits", "full: workers ahead")
    rest = [
        line((f"{gloss:22}", DIM), (piece, style))
        for gloss, piece in zip(glosses, drawn[1:], strict=False)
    ]
    return lines([head, *rest])


def pipeline(s: Snapshot, width: int, height: int) -> Content:
    """The stages left to right, each with time, share, how busy it is, and the limiting one
    marked."""
    if s.loader is None:
        return line(("–", DIM))
    nodes = s.loader.nodes
    arrow = " → " if width >= 110 else "→"
    cell = (width - len(arrow) * (len(nodes) - 1)) // len(nodes)
    gap = " " * len(arrow)
    rows: list[list[str | tuple[str, str]]] = [[] for _ in range(5)]
    for number, node in enumerate(nodes):
        style = BAD if node.limits and node.name != "compute" else GOOD if node.limits else MARK
        known = node.mean_us is not None
        pieces = (
            (node.name.center(cell), f"bold {style}" if node.limits else "bold" if known else DIM),
            (_time(node).center(cell), "" if known else DIM),
            (_share(node, cell).center(cell), "" if known else DIM),
            (bar(node.used_share, cell - 2).center(cell), style),
            (_mark(node, cell).center(cell), f"bold {style}" if node.limits else DIM),
        )
        for row, piece in zip(rows, pieces, strict=True):
            if number:
                row.append((arrow, DIM) if row is rows[0] else gap)
            row.append(piece)
    return lines([line(*row) for row in rows])


def _time(node: Node) -> str:
    return micros(node.mean_us)


def _share(node: Node, cell: int) -> str:
    if node.share is None:
        return ""
    return f"{percent(node.share)} of step" if cell > 15 else percent(node.share)


def _mark(node: Node, cell: int) -> str:
    if node.limits:
        return "▲ limits" if cell < 14 else f"▲ limits, {percent(node.used_share)} used"
    if node.mean_us is None:
        return fitted(text(node.reason or ""), cell - 1).strip()
    return f"{percent(node.used_share)} used"


def advice(s: Snapshot, width: int, height: int) -> Content:
    """Recommendations, best first, one line each."""
    found = s.advice
    if found.problem is not None:
        return line((text(found.problem), BAD))
    if not found.ready:
        return line(("working it out…" if s.loader is not None else "–", DIM))
    said = (
        [line((text(found.summary, 300), "bold" if found.recommendations else DIM))]
        if found.summary
        else []
    )
    if not found.recommendations:
        return lines(said or [line(("–", DIM))])
    room = max(1, height)
    rows = list(enumerate(found.recommendations))
    if room >= 2 * len(rows) + len(said):
        return lines([each for n, r in rows for each in _with_reason(n, r, found, width)] + said)
    shown = [_line(n, r, found, width) for n, r in rows]
    if room > len(shown):
        shown += said
    if len(shown) > room:
        shown = [*shown[: room - 1], line((f"… and {len(shown) - room + 1} more: press 2", DIM))]
    return lines(shown)


def _line(n: int, each: Recommendation, found: AdviceView, width: int) -> Content:
    left_out = found.plan[n].left_out if n < len(found.plan) else None
    told = f"{text(each.title)}: {left_out}" if left_out else text(each.title)
    gain = (f"{gain_of(each):<15}", DIM if left_out else f"bold {GOOD}")
    return line(
        (f"{n + 1:>2} ", DIM),
        gain,
        (f"{text(each.rule, 20):<20} ", SECOND),
        fitted(told, max(8, width - 40)),
    )


def _with_reason(n: int, each: Recommendation, found: AdviceView, width: int) -> list[Content]:
    why = fitted(
        text(each.why if each.measured_range is None else effect_text(each)), max(8, width - 3)
    )
    return [_line(n, each, found, width), line((f"   {why}", DIM))]


def gain_of(each: Recommendation) -> str:
    """'×1.6–1.9', or what kind of advice it is where speed is not the point."""
    if each.kind != "speed":
        return each.kind
    if each.measured is not None:
        proved = effect_text(each).startswith("proved")
        return f"{factor(each.measured)} {'proved' if proved else 'measured'}"
    low, high = factor(each.predicted.low), factor(each.predicted.high)
    return low if low == high else f"{low}–{high.removeprefix('×')}"


def waiting(s: Snapshot, width: int, height: int) -> Content:
    """Where the waiting came from, largest first."""
    found = s.loader.report.waiting if s.loader is not None else None
    if found is None or found.total_s <= 0:
        return line(("no waiting was recorded", DIM))
    rows = []
    for name, cause in sorted(found.causes.items(), key=lambda item: -item[1].share)[
        : max(1, height)
    ]:
        wide = max(4, width - 34)
        rows.append(
            line(
                f"{text(name, 13):<13}",
                (f"{duration(cause.seconds):>11}", DIM),
                (f"{percent(cause.share):>8}  ", "bold"),
                (bar(cause.share, min(40, wide)), BAD),
            )
        )
    return lines(rows)
