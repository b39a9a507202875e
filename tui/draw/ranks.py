"""The ranks of a job as a heat map: a cell a rank, darker the longer it waits for its data."""

from __future__ import annotations

from statistics import median

from textual.content import Content

from ...reports.words.units import percent
from ..snapshot import Snapshot
from .marks import BAD, DIM, FAIR, GOOD, MARK, Part, line, lines

# From which share of the step on, with the mark and style; marks differ in shape, so that none
# needs its colour.
_HEAT: tuple[tuple[float, str, str], ...] = (
    (0.5, "█", BAD),
    (0.1, "▓", FAIR),
    (0.05, "▒", GOOD),
    (0.0, "░", GOOD),
)
_UNKNOWN = ("·", DIM)
_CELL, _LABEL, _MOST = 2, 7, 64


def heat_map(s: Snapshot, width: int, height: int) -> Content:
    """Who waits longest, in a sentence; then the cells, a line for each few ranks, the one looked
    at marked."""
    ranks = s.ranks
    known = [(each.share, each.rank) for each in ranks if each.share is not None]
    if not known:
        return line(("no steps of its ranks yet", DIM))
    share, rank = max(known, key=lambda each: (each[0], -each[1]))
    middle = median(each[0] for each in known)
    head = line(
        f"rank {rank} waits longest for its data, ",
        (percent(share), f"bold {_heat(share)[1]}".strip()),
        f" of its steps; the middle one {percent(middle)}",
    )
    room = max(1, min(_MOST, (width - _LABEL) // (_CELL + 1)))
    a_line = next((many for many in (64, 32, 16, 8) if many <= room), room)
    looked_at = s.choice.rank if s.choice is not None else None
    rows = []
    for start in range(0, len(ranks), a_line):
        parts: list[str | Part] = [(f"{ranks[start].rank:>{_LABEL - 2}}  ", DIM)]
        for each in ranks[start : start + a_line]:
            mark, style = _heat(each.share)
            parts += [
                (mark * _CELL, style),
                ("◂", f"bold {MARK}") if each.rank == looked_at else " ",
            ]
        rows.append(line(*parts))
    return lines([head, *rows, _legend()])


def _heat(share: float | None) -> tuple[str, str]:
    if share is None:
        return _UNKNOWN
    return next((mark, style) for least, mark, style in _HEAT if share >= least)


def _legend() -> Content:
    parts: list[str | Part] = [" " * _LABEL]
    for (least, mark, style), most in zip(
        _HEAT[::-1], (*(each[0] for each in _HEAT[-2::-1]), None), strict=True
    ):
        said = (
            f"below {percent(most)}" if not least and most is not None else f"from {percent(least)}"
        )
        parts += [(mark * _CELL, style), f" {said}  "]
    return line(
        *parts,
        (_UNKNOWN[0] * _CELL, _UNKNOWN[1]),
        " not known  ",
        ("◂", f"bold {MARK}"),
        " looked at",
    )
