"""The fifth screen: how times are spread, and the slowest batches."""

from __future__ import annotations

from textual.content import Content

from ...reports.words.glosses import CAUSES
from ...reports.words.units import UNKNOWN, count, duration
from ..facts.spread import Slow, Spread
from ..snapshot import Snapshot
from .marks import BAD, DIM, GOOD, MARK, SECOND, course, line, lines, text

_STYLES = {"wait": BAD, "fetch": MARK, "collate": SECOND, "compute": GOOD}


def spread(s: Snapshot, width: int, height: int, number: int = 0) -> Content:
    """One stage's distribution on a logarithmic axis, with its percentiles."""
    found = s.loader.batches.spreads[number] if s.loader is not None else None
    if found is None:
        return line(("no batches yet", DIM))
    if not found.count:
        return line((text(found.reason or "not measured"), DIM))
    figures = line(
        ("p50 ", DIM),
        (_time(found.p50_ns), "bold"),
        ("  p95 ", DIM),
        (_time(found.p95_ns), "bold"),
        ("  max ", DIM),
        (_time(found.max_ns), "bold"),
        *((("  p99 ", DIM), (_time(found.p99_ns), "bold")) if width >= 56 else ()),
    )
    rows = max(1, min(12, height - 2))
    drawn = course(_stretched(found, width), width, rows)
    return lines(
        [
            figures,
            *(line((row, _STYLES[found.name])) for row in drawn),
            line((_axis(found, width), DIM)),
        ]
    )


def _stretched(found: Spread, width: int) -> list[float | None]:
    """The counts at every column; None where there is nothing, so that a lone batch still shows as
    a floor."""
    bins = len(found.counts)
    if bins >= width:
        return [float(n) or None for n in found.counts]
    return [float(found.counts[at * bins // width]) or None for at in range(width)]


def _axis(found: Spread, width: int) -> str:
    low, high = duration(found.edges_ns[0] / 1e9), duration(found.edges_ns[-1] / 1e9)
    return low + " " * max(1, width - len(low) - len(high)) + high


def _time(ns: float | None) -> str:
    return duration(ns / 1e9 if ns is not None else None)


def slowest(s: Snapshot, width: int, height: int, by: str = "wait") -> Content:
    """The slowest batches by one stage: number, worker, times and cause."""
    found = s.loader.batches.slowest.get(by, ()) if s.loader is not None else ()
    wide = width >= 110
    names = "".join(f"{_head(name, by):>9}" for name in ("wait", "fetch", "collate", "compute"))
    at = f"{'at':>11}" if wide else ""
    rows = [line((f"{'batch':>8}{'epoch':>6}{at}{'worker':>7}{names}  cause", DIM))]
    rows += [_row(each, by, wide) for each in found]
    if not found:
        rows.append(line((f"no batch has a measured {by}", DIM)))
    return lines(rows)


def _head(name: str, by: str) -> str:
    return f"▼{name}" if name == by else name


def _row(each: Slow, by: str, wide: bool) -> Content:
    times = {
        "wait": each.wait_ns,
        "fetch": each.fetch_ns,
        "collate": each.collate_ns,
        "compute": each.compute_ns,
    }
    worker = UNKNOWN if each.worker is None else f"w{each.worker}"
    at = f"{duration(each.at_s):>11}" if wide else ""
    return line(
        f"{count(each.number):>8}{each.epoch:>6}{at}{worker:>7}",
        *((f"{_time(value):>9}", "bold" if name == by else "") for name, value in times.items()),
        (f"  {text(each.cause, 14):<12}", BAD),
        (f"  {CAUSES.get(each.cause, '')}" if wide else "", DIM),
    )
