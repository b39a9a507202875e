"""The line of a method that gives samples in which most of a stage goes by, with what it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ....profiler.record.inspect.uses import place_of
from ....profiler.store.inspection import Part
from ...schema.report_model import CodeStage, HotSpot, Range
from ...stacks.code_summary import wilson
from ..method import Method

_METHODS = ("__getitem__", "__getitems__")


class OwnLine(NamedTuple):
    """A line of this part's source: of a loop, the one in it that takes most. `text` is the first
    line of its statement, `call` the library's function below it that takes most; `share` is that
    of the loop, else of the line."""

    part: Part
    line: str
    text: str
    place: str | None
    call: str | None
    share: Range


def own_line(stage: CodeStage, parts: Iterable[Part]) -> OwnLine | None:
    """The line with the largest share; None where no line of these parts' sources was seen."""
    found = [each for part in parts for each in _of_part(stage, part)]
    return max(found, key=lambda each: each.share.mid, default=None)


def _of_part(stage: CodeStage, part: Part) -> Iterable[OwnLine]:
    source = part.getitem or part.getitems
    method, seen = Method(source), defaultdict[int, list[HotSpot]](list)
    for spot in stage.lines:
        statement = method.at(spot.text or "") if _is_of(spot) else None
        if statement is not None:
            seen[id(method.loops.get(statement, statement))].append(spot)
    for spots in seen.values():
        hottest = max(spots, key=lambda spot: spot.total_share)
        share = min(1.0, sum(spot.total_share for spot in spots))
        low, high = wilson(round(share * stage.samples), stage.samples)
        line = (hottest.text or "").strip()
        statement = method.at(line)
        text = method.text(statement) if statement is not None else line
        place = place_of(hottest.file, hottest.line)
        yield OwnLine(part, line, text, place, _below(stage, place), Range(low, share, high))


def _is_of(spot: HotSpot) -> bool:
    return spot.own and spot.function.rpartition(".")[2] in (*_METHODS, "<listcomp>", "<genexpr>")


def _below(stage: CodeStage, place: str) -> str | None:
    calls = [spot for spot in stage.hot if not spot.own and spot.called_from == place]
    spot = max(calls, key=lambda spot: spot.total_share, default=None)
    if spot is None:
        return None
    return f"{spot.library}'s {spot.function}" if spot.library else spot.function
