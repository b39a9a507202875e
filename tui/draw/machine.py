"""The fourth screen: the machine's meters, each with its limit, and why some are not measured."""

from __future__ import annotations

import numpy as np
from textual.content import Content

from ...profiler.store.run.run import SystemRun
from ...reports.document.blocks import sentences
from ...reports.words.curves import READ, Curve, curves
from ...reports.words.units import by_reason
from ..snapshot import Snapshot
from .marks import BAD, DIM, EIGHTHS_UP, MARK, blocks, course, dim, fitted, heat, line, lines, text

_NAME = 25
# Chart → the group of its meters; those of others are a GPU's.
_GROUPS = {"cpu": "CPU", "throttled": "CPU", "memory": "memory", "io": "I/O"}
# Chart → what fills a meter without a limit: a quota that holds back a quarter of the time does.
_FULL = {"throttled": 25.0, "gpu": 100.0}


def cores(s: Snapshot, width: int, height: int) -> Content:
    """One mark a core, by how busy it is, as many lines as are needed."""
    if isinstance(s.system, str) or not len(s.system.core["busy_pct"]):
        return dim("cores were not measured")
    shares = (np.nan_to_num(s.system.core["busy_pct"][-1]).clip(0, 100) / 100).tolist()
    marks = ((EIGHTHS_UP[max(1, min(8, round(share * 8)))], heat(share)) for share in shares)
    return lines(Content.assemble(*marks).fold(max(1, width)))


def meters(s: Snapshot, width: int, height: int) -> Content:
    """A line a meter: value now, course, limit; groups under each other."""
    if isinstance(s.system, str):
        return dim(text(s.system))
    rows, before = [], ""
    for curve in curves(s.system, processes=False):
        group = _GROUPS.get(curve.chart, "GPU")
        rows.append(_meter(curve, group if group != before else "", width))
        before = group
    missing = by_reason(s.system.reasons.items())
    said = [_allowed(s.system), missing and f"Not measured: {missing}."]
    return lines([*rows, blocks(sentences(said, "dim"), width)])


def _meter(curve: Curve, group: str, width: int) -> Content:
    show, top = READ[curve.chart], curve.limit or _FULL.get(curve.chart)
    now = float(curve.values[-1])
    share = now / top if top else None
    if share is not None and curve.name == "available":
        share = 1 - share
    alarm = share is not None and share >= 0.9
    drawn = course(curve.values, max(8, min(60, (width - 46) // 2)), 1, top)[0]
    return line(
        (f"{group:<8}", "bold"),
        fitted(text(curve.name), _NAME),
        (f"{show(now):>11} ", f"bold {BAD}" if alarm else "bold"),
        (drawn, heat(share) if share is not None else MARK),
        (f"  of {show(curve.limit)}" if curve.limit else "", DIM),
    )


def _allowed(s: SystemRun) -> str:
    """'8 cores, 4 usable, a quota of 2': what the processes may use."""
    allowed = [f"{s.cores_logical} cores"] if s.cores_logical else []
    if s.affinity and s.affinity != s.cores_logical:
        allowed.append(f"{s.affinity} usable")
    if s.cgroup_cpu_quota:
        allowed.append(f"a quota of {s.cgroup_cpu_quota:g}")
    return ", ".join(allowed)
