"""A chain of transforms that makes pictures small after it has worked on all of their pixels."""

from __future__ import annotations

import re
from typing import NamedTuple

from ....profiler.base.metadata import clean
from ...case.case import Case
from ...schema.report_model import TransformTime
from ..inputs import is_name

_SMALLER = re.compile(r"Resize\w*|\w*Crop|Thumbnail|LongestMaxSize|SmallestMaxSize", re.IGNORECASE)
# What makes a tensor of a picture or an array. Others that come after it work on tensors.
_CONVERTS = re.compile(r"(?:PIL)?ToTensor\w*|ToImage\w*|ToDtype|ConvertImageDtype|EnsureType\w*")


class LateStep(NamedTuple):
    """`late` makes pictures small, `before` run on all pixels until then: they take `share` of
    fetch. `code` moves it, or says to."""

    late: TransformTime
    before: tuple[TransformTime, ...]
    share: float
    code: str


def late_step(case: Case) -> LateStep | None:
    """The first step that makes pictures small in a chain, where others come before it."""
    steps = _steps(case)
    late = next((each for each in steps if _SMALLER.fullmatch(each.name)), None)
    if late is None:
        return None
    chain = [each for each in steps if each.chain == late.chain]
    if [each.position for each in chain] != [*range(len(chain))]:
        return None
    first = 0
    for each in () if _of_pictures(case) else chain[: late.position]:
        if _CONVERTS.fullmatch(each.name):  # a tensor can be resized, an array cannot
            first = each.position + 1
    moved = tuple(chain[first : late.position])
    if not moved:
        return None
    path = late.chain.split(".")
    code = f"# By hand: {clean(late.name, 60)} before {clean(moved[0].name, 60)} in the chain\n"
    if path[0] == "dataset" and all(map(is_name, path)):
        code = (
            f"steps = {late.chain}.transforms\n"
            f"steps.insert({first}, steps.pop({late.position}))  # or in your own call\n"
        )
    return LateStep(late, moved, sum(each.share or 0.0 for each in moved), code)


def on_tensors(case: Case) -> bool:
    """Whether most of the time of chains goes by after a step that makes tensors."""
    after = total = 0.0
    converted: set[str] = set()
    for each in _steps(case):
        if _CONVERTS.fullmatch(each.name):
            converted.add(each.chain)
        total += each.share or 0.0
        after += (each.share or 0.0) * (each.chain in converted)
    return after > total / 2


def _steps(case: Case) -> list[TransformTime]:
    """Chain after chain, in the order in which they run."""
    return sorted(case.report.transforms, key=lambda each: (each.chain, each.position))


def _of_pictures(case: Case) -> bool:
    names = {name for part in case.inspection.parts for name in part.names}
    folders = any(part.is_a("folder.ImageFolder") for part in case.inspection.parts)
    return folders or {"Image", "open"} <= names
