"""A stage's stack samples divided among the user's own lines and the calls that have none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...profiler.record.inspect.uses import place_of
from ..schema.report_model import CodeStage, Doing, HotSpot, Range
from .code_summary import wilson

LEAST_SHARE = 0.08  # of a stage's samples; what takes less is no part
# Where more samples than this have no line of the user's on the stack, functions are parts too.
OTHERS = 0.3


class Part(NamedTuple):
    """The source of a line, or a function's name; where it is; the call below it that takes most;
    its share of the samples, with its 95 % interval; what was done there."""

    text: str | None
    place: str | None
    call: str | None
    share: Range
    doing: tuple[Doing, ...] = ()


def parts_of(code: CodeStage) -> Iterator[Part]:
    """The stage's samples by the innermost of the user's own lines; those without one by the
    innermost function."""
    left = 1.0
    # What a library has made by `exec` counts to the line that calls it.
    lines = [each for each in code.lines if each.file != "<string>" or each.called_from is None]
    for line in lines:
        place = _place(line)
        inside = sum(each.total_share for each in lines if each.called_from == place)
        share = line.total_share - inside
        left -= max(0.0, share)
        if share >= LEAST_SHARE:
            text = line.text.strip() if line.text else line.function
            yield Part(text, place, _call_at(code, place), _range(share, code), line.doing)
    if left > OTHERS:
        for spot in code.hot:
            if spot.share >= LEAST_SHARE and spot.called_from is None and not spot.own:
                yield Part(_named(spot), _place(spot), None, _range(spot.share, code))


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
