"""A stage's stack samples divided among the user's own lines and the calls that have none."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from ...profiler.record.inspect.uses import place_of
from ..schema.report_model import CodeStage, Doing, HotSpot, Range
from .code_summary import wilson

LEAST_SHARE = 0.08  # of a stage's samples; what takes less is no part
# Where more samples than this have no line of the user's on the stack, functions are parts too.
OTHERS = 0.3
# A line is divided into those that it calls if one of them takes this part of it; a line that takes
# NEARLY_ALL of the stage, from a smaller one on.
MOST, LARGE, NEARLY_ALL = 0.6, 0.3, 0.8


class Part(NamedTuple):
    """The source of a line, or a function's name; where it is; the call below it that takes most;
    its share of the samples, with its 95 % interval; what was done there."""

    text: str | None
    place: str | None
    call: str | None
    share: Range
    doing: tuple[Doing, ...] = ()


def parts_of(code: CodeStage, whole: tuple[str, ...] = ()) -> Iterator[Part]:
    """The stage's samples by the user's own lines, the largest part first; those without one by the
    innermost function.

    Followed from the outermost line inwards. A line is divided into those that it calls where one
    of them takes most of it, or where they are of several functions; else the call is the part, and
    not the pieces of the function that it calls. So it is if no piece takes as much as another line
    does. A line in which all happens is divided sooner: to name it would say nothing. Calls of
    functions that are `whole` are never divided.
    """
    # What a library has made by `exec` counts to the line that calls it.
    lines = [each for each in code.lines if each.file != "<string>" or each.called_from is None]
    below: dict[str | None, list[HotSpot]] = defaultdict(list)
    places = {_place(line) for line in lines}
    for line in lines:
        inside = line.called_from in places and line.called_from != _place(line)
        below[line.called_from if inside else None].append(line)
    divided = (
        _divided(line, below, whole, frozenset(), _rival(line, below[None])) for line in below[None]
    )
    for line, share, called in sorted(chain.from_iterable(divided), key=lambda part: -part[1]):
        if share >= LEAST_SHARE:
            text, place = line.text.strip() if line.text else line.function, _place(line)
            call = called or _call_at(code, place)
            doing = () if called else line.doing
            yield Part(text, place, call, _range(share, code), doing)
    if 1 - sum(line.total_share for line in below[None]) > OTHERS:
        for spot in code.hot:
            if spot.share >= LEAST_SHARE and spot.called_from is None and not spot.own:
                yield Part(_named(spot), _place(spot), None, _range(spot.share, code))


def _divided(
    line: HotSpot,
    below: Mapping[str | None, list[HotSpot]],
    whole: tuple[str, ...],
    above: frozenset[str | None],
    rival: float,
) -> Iterator[tuple[HotSpot, float, str | None]]:
    """(line, its share, the own function below it that takes most and where)."""
    place, share = _place(line), line.total_share
    called = [] if place in above else below.get(place, [])  # each once, in a circle of calls
    largest = max(called, key=lambda each: each.total_share, default=None)
    if largest is None:
        yield line, share, None
        return
    several = len({each.function for each in called if each.total_share >= LEAST_SHARE}) > 1
    least = LARGE if share >= NEARLY_ALL else 0.0 if several else MOST
    leads = largest.total_share > rival or rival > share
    if largest.function.endswith(whole) or not leads or largest.total_share < least * share:
        yield line, share, f"{largest.function} {_place(largest)}"
        return
    yield line, share - sum(each.total_share for each in called), None
    for each in called:
        yield from _divided(each, below, whole, above | {place}, max(rival, _rival(each, called)))


def _rival(line: HotSpot, lines: list[HotSpot]) -> float:
    """The share of the largest of the others."""
    return max((each.total_share for each in lines if each is not line), default=0.0)


def _call_at(code: CodeStage, place: str | None) -> str | None:
    """The library's function below this line that takes most of it."""
    below = [spot for spot in code.hot if not spot.own and spot.called_from == place]
    return _named(max(below, key=lambda spot: spot.total_share)) if below else None


def _named(spot: HotSpot) -> str:
    known = spot.library is None or spot.function.startswith(f"{spot.library}.")
    return spot.function if known else f"{spot.library} {spot.function}"


def _place(spot: HotSpot) -> str | None:
    return place_of(spot.file, spot.line) if spot.file else None


def _range(share: float, code: CodeStage) -> Range:
    low, high = wilson(round(share * code.samples), code.samples)
    return Range(low, share, high)
