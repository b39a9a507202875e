"""The fourth screen: the machine's meters, each with its limit, or why it is not measured."""

from __future__ import annotations

from textual.content import Content

from ..facts.machine import Meter
from ..snapshot import Snapshot
from .marks import BAD, DIM, EIGHTHS_UP, MARK, course, dim, fitted, heat, lines, text


def cores(s: Snapshot, width: int, height: int) -> Content:
    """One mark a core, by how busy it is, as many lines as are needed."""
    shares = s.machine.cores
    if not shares:
        return dim("cores were not measured")
    marks = ((EIGHTHS_UP[max(1, min(8, round(share * 8)))], heat(share)) for share in shares)
    return lines(Content.assemble(*marks).fold(max(1, width)))


def meters(s: Snapshot, width: int, height: int) -> Content:
    """A line a meter: value now, course, limit; groups under each other."""
    room = max(8, min(60, (width - 34) // 2))
    rows, group = [], ""
    for meter in s.machine.meters:
        head = f"{meter.group if meter.group != group else '':<8}"
        group = meter.group
        rows.append(Content.assemble((head, "bold"), *_meter(meter, room, width - 8)))
    return lines(rows)


def _meter(m: Meter, room: int, width: int) -> list[tuple[str, str]]:
    name = f"{text(m.name, 13):<13}"
    if m.now is None or m.history is None:
        return [(name, DIM), (fitted(f"   –  {text(m.reason or '')}", width - 13).rstrip(), DIM)]
    style = heat(m.share) if m.share is not None else MARK
    drawn = course(m.history, room, 1, m.top)[0]
    left = width - 13 - 12 - room - 2
    alarm = BAD if m.share is not None and m.share >= 0.9 else ""
    return [
        (name, ""),
        (f"{m.now:>11} ", f"bold {alarm}".strip()),
        (drawn, style),
        (f"  {text(m.limit, left)}", DIM),
    ]
