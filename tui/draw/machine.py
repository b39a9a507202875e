"""The fourth screen: the machine's meters, each with its limit, and why some are not measured."""

from textual.content import Content

from ...reports.document.blocks import sentences
from ...reports.words.curves import READ, Curve, curves
from ...reports.words.units import by_reason
from ..snapshot import Snapshot
from .marks import BAD, DIM, MARK, blocks, course, dim, fitted, heat, line, lines, text

_NAME = 25
# Chart → the group of its meters; those of others are a GPU's.
_GROUPS = {"cpu": "CPU", "throttled": "CPU", "memory": "memory", "io": "I/O"}
# Chart → what fills a meter without a limit: a quota that holds back a quarter of the time does.
_FULL = {"throttled": 25.0, "gpu": 100.0}


def meters(s: Snapshot, width: int) -> Content:
    """A line a meter: value now, course, limit."""
    if isinstance(s.system, str):
        return dim(text(s.system))
    rows = [_meter(curve, width) for curve in curves(s.system)]
    missing = by_reason(s.system.reasons.items())
    said = [missing and f"Not measured: {missing}."]
    return lines([*rows, blocks(sentences(said, "dim"), width)])


def _meter(curve: Curve, width: int) -> Content:
    show, top = READ[curve.chart], curve.limit or _FULL.get(curve.chart)
    now = float(curve.values[-1])
    share = now / top if top else None
    if share is not None and curve.name == "available":
        share = 1 - share
    alarm = share is not None and share >= 0.9
    drawn = course(curve.values, max(8, min(60, (width - 46) // 2)), top)
    return line(
        (f"{_GROUPS.get(curve.chart, 'GPU'):<8}", DIM),
        fitted(text(curve.name), _NAME),
        (f"{show(now):>11} ", f"bold {BAD}" if alarm else "bold"),
        (drawn, heat(share) if share is not None else MARK),
        (f"  of {show(curve.limit)}" if curve.limit else "", DIM),
    )
