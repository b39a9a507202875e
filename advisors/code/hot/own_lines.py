"""The lines of methods that give samples in which a stage goes by, with what they call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ....profiler.record.inspect.uses import place_of
from ....profiler.store.inspection import Part
from ...schema.report_model import CodeStage, HotSpot, Range
from ...stacks.code_summary import wilson
from ..method import Method


class OwnLine(NamedTuple):
    """A line of this source of a part: of a loop, the one in it that takes most. `text` is the
    first line of its statement, `call` the library's function below it that takes most; `share` is
    that of the loop, else of the line."""

    part: Part
    source: tuple[str, ...]
    line: str
    text: str
    place: str | None
    call: str | None
    share: Range


def own_lines(stage: CodeStage, parts: Iterable[Part]) -> list[OwnLine]:
    """Lines of the methods that give these parts' samples, and of functions that these call, the
    largest share first."""
    sources = ((p, each) for p in parts for each in (p.getitem, p.getitems, p.iter, *p.helpers))
    found = [line for part, source in sources for line in _of_source(stage, part, source)]
    return sorted(found, key=lambda line: -line.share.mid)


def _of_source(stage: CodeStage, part: Part, source: tuple[str, ...]) -> Iterable[OwnLine]:
    method, seen = Method(source), defaultdict[int, list[HotSpot]](list)
    name = method.function.name if method.function is not None else None
    for spot in stage.lines:
        known = spot.function.rpartition(".")[2] in (name, "<listcomp>", "<genexpr>")
        statement = method.at(spot.text or "") if spot.own and known else None
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
        below = _below(stage, place)
        yield OwnLine(part, source, line, text, place, below, Range(low, share, high))


def _below(stage: CodeStage, place: str) -> str | None:
    calls = [spot for spot in stage.hot if not spot.own and spot.called_from == place]
    spot = max(calls, key=lambda spot: spot.total_share, default=None)
    if spot is None:
        return None
    return f"{spot.library}'s {spot.function}" if spot.library else spot.function
