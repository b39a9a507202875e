"""The ranks of a job as a heat map: a cell a rank, darker the longer it waits for its data."""

from __future__ import annotations

from statistics import median

from textual.content import Content

from ...reports.words.units import percent
from ..snapshot import Snapshot
from .marks import BAD, DIM, FAIR, GOOD, MARK, Part, dim, line, lines

# From which share of the step on: mark, style and what they mean. Marks differ in shape, so that
# none needs its colour. Below 0 is what is not known.
_HEAT: tuple[tuple[float, str, str, str], ...] = (
    (0.5, "██", BAD, "from 50 %"),
    (0.1, "▓▓", FAIR, "from 10 %"),
    (0.05, "▒▒", GOOD, "from 5 %"),
    (0.0, "░░", GOOD, "below 5 %"),
    (-1.0, "··", DIM, "not known"),
)
_LOOKED_AT = ("◂", f"bold {MARK}")
_CELL, _LABEL = 3, 7


def heat_map(s: Snapshot, width: int, height: int) -> Content:
    """Who waits longest, in a sentence; then the cells, a line for each few ranks, the one looked
    at marked."""
    known = [(each.share, -each.rank) for each in s.ranks if each.share is not None]
    if not known:
        return dim("no steps of the ranks yet")
    share, rank = max(known)
    head = line(
        f"Rank {-rank} waits longest for data: ",
        (percent(share), f"bold {_heat(share)[1]}"),
        f" of its step time; median {percent(median(each for each, _ in known))}",
    )
    room = max(1, (width - _LABEL) // _CELL)
    a_line = next((many for many in (64, 32, 16, 8) if many <= room), room)
    looked_at = s.choice.rank if s.choice is not None else None
    rows = []
    for start in range(0, len(s.ranks), a_line):
        parts: list[str | Part] = [(f"{s.ranks[start].rank:>{_LABEL - 2}}  ", DIM)]
        for each in s.ranks[start : start + a_line]:
            parts += [_heat(each.share), _LOOKED_AT if each.rank == looked_at else " "]
        rows.append(line(*parts))
    legend: list[str | Part] = [" " * _LABEL]
    for _, mark, style, meaning in _HEAT[::-1]:
        legend += [(mark, style), f" {meaning}  "]
    return lines([head, *rows, line(*legend, _LOOKED_AT, " looked at")])


def _heat(share: float | None) -> Part:
    level = -1.0 if share is None else share
    return next((mark, style) for least, mark, style, _ in _HEAT if level >= least)
