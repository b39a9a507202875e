"""The fifth screen: how times are spread, and the slowest batches."""

from __future__ import annotations

from textual.content import Content

from ...reports.words.glosses import CAUSES
from ...reports.words.units import UNKNOWN, count, duration, micros
from ..facts.spread import STAGES, Slow
from ..snapshot import LoaderView
from .marks import BAD, DIM, GOOD, MARK, SECOND, course, line, lines, text
from .needs import needs_loader

_STYLES = dict(zip(STAGES, (BAD, MARK, SECOND, GOOD), strict=True))


@needs_loader
def spread(v: LoaderView, width: int, height: int, number: int = 0) -> Content:
    """One stage's distribution on a logarithmic axis, with its percentiles."""
    stage_name = STAGES[number]
    found, stage = v.batches.spreads[stage_name], v.report.stages[stage_name]
    bins = len(found.counts)
    if not bins:
        return line((text(stage.reason or "not measured"), DIM))
    known = {"p50 ": micros(stage.p50_us), "  p95 ": micros(stage.p95_us)}
    known["  max "] = _time(found.max_ns)
    if width >= 56:
        known["  p99 "] = micros(stage.p99_us)
    parts = [part for name, value in known.items() for part in ((name, DIM), (value, "bold"))]
    # A lone batch still shows as a floor; what is between two bins is theirs.
    places = range(max(bins, width))
    values = [float(found.counts[at * bins // len(places)]) or None for at in places]
    low, high = (duration(found.edges_ns[end] / 1e9) for end in (0, -1))
    axis = low + f"{high:>{max(len(high) + 1, width - len(low))}}"
    drawn = course(values, width, max(1, min(12, height - 2)))
    return lines(
        [line(*parts), *(line((row, _STYLES[stage_name])) for row in drawn), line((axis, DIM))]
    )


def _time(ns: float | None) -> str:
    return duration(ns / 1e9 if ns is not None else None)


@needs_loader
def slowest(v: LoaderView, width: int, height: int, by: str = "wait") -> Content:
    """The slowest batches by one stage: number, worker, times and cause."""
    found = v.batches.slowest[by]
    wide = width >= 110
    names = "".join(f"{'▼' * (name == by) + name:>9}" for name in STAGES)
    at = f"{'at':>11}" if wide else ""
    rows = [line((f"{'batch':>8}{'epoch':>6}{at}{'worker':>7}{names}  cause", DIM))]
    rows += [_row(each, by, wide) for each in found]
    if not found:
        rows.append(line((f"no batch has a measured {by}", DIM)))
    return lines(rows)


def _row(each: Slow, by: str, wide: bool) -> Content:
    worker = UNKNOWN if each.worker is None else f"w{each.worker}"
    at = f"{duration(each.at_s):>11}" if wide else ""
    return line(
        f"{count(each.number):>8}{each.epoch:>6}{at}{worker:>7}",
        *((f"{_time(ns):>9}", "bold" * (name == by)) for name, ns in each.times_ns.items()),
        (f"  {text(each.cause, 14):<12}", BAD),
        (f"  {CAUSES.get(each.cause, '')}" if wide else "", DIM),
    )
