"""The fifth screen: how times are spread, and the slowest batches."""

from __future__ import annotations

from textual.content import Content

from ...reports.words.glosses import CAUSES
from ...reports.words.units import UNKNOWN, count, duration, micros
from ..facts.spread import STAGES
from ..facts.spread import slowest as slowest_of
from ..facts.spread import spread as spread_of
from ..snapshot import LoaderView
from .marks import BAD, DIM, GOOD, MARK, SECOND, course, dim, line, lines, text
from .needs import needs_loader

_STYLES = (BAD, MARK, SECOND, GOOD)


@needs_loader
def spread(v: LoaderView, width: int, height: int, number: int = 0) -> Content:
    """One stage's distribution on a logarithmic axis, with its percentiles."""
    found, stage = spread_of(v.loader, STAGES[number]), v.report.stages[STAGES[number]]
    if found is None:
        return dim(text(stage.reason or "not measured"))
    known = {"p50 ": micros(stage.p50_us), "  p95 ": micros(stage.p95_us)}
    known["  max "] = duration(found.max_ns / 1e9)
    if width >= 56:
        known["  p99 "] = micros(stage.p99_us)
    parts = [part for name, value in known.items() for part in ((name, DIM), (value, "bold"))]
    counts = [n or None for n in found.counts]  # a lone batch still shows as a floor
    drawn = course(counts, width, max(1, min(12, height - 2)))
    low, high = duration(found.low_ns / 1e9), duration(found.high_ns / 1e9)
    axis = low + high.rjust(width - len(low))
    return lines([line(*parts), *(line((row, _STYLES[number])) for row in drawn), dim(axis)])


@needs_loader
def slowest(v: LoaderView, width: int, height: int, by: str = "wait") -> Content:
    """The slowest batches by one stage: number, worker, times and cause."""
    found = slowest_of(v.loader, by, v.begin_ns)
    wide = width >= 110
    names = "".join(f"{'▼' * (name == by) + name:>9}" for name in STAGES)
    at = f"{'at':>11}" if wide else ""
    rows = [dim(f"{'batch':>8}{'epoch':>6}{at}{'worker':>7}{names}  cause")]
    for each in found:
        worker = UNKNOWN if each.worker is None else f"w{each.worker}"
        at = f"{duration(each.at_s):>11}" if wide else ""
        times = {name: micros(ns and ns / 1e3) for name, ns in each.times_ns.items()}
        rows.append(
            line(
                f"{count(each.number):>8}{each.epoch:>6}{at}{worker:>7}",
                *((f"{time:>9}", "bold" * (name == by)) for name, time in times.items()),
                (f"  {text(each.cause, 14):<12}", BAD),
                (f"  {CAUSES.get(each.cause, '')}" if wide else "", DIM),
            )
        )
    return lines(rows if found else [*rows, dim(f"no batch has a measured {by}")])
