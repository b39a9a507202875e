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
    steps = sorted(case.report.transforms, key=lambda each: (each.chain, each.position))
    late = next((each for each in steps if _SMALLER.fullmatch(each.name)), None)
    if late is None:
        return None
    chain = [each for each in steps if each.chain == late.chain]
    before = tuple(each for each in chain if each.position < late.position)
    if any(each.position != n for n, each in enumerate(chain)):
        return None
    first = 0
    if not _of_pictures(case):  # a tensor can be resized, an array cannot
        converts = [each for each in before if _CONVERTS.fullmatch(each.name)]
        first = converts[-1].position + 1 if converts else 0
    moved = before[first:]
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
    for each in sorted(case.report.transforms, key=lambda each: (each.chain, each.position)):
        total += each.share or 0.0
        if each.chain in converted or _CONVERTS.fullmatch(each.name):
            converted.add(each.chain)
            after += each.share or 0.0
    return after > total / 2


def _of_pictures(case: Case) -> bool:
    names = {name for part in case.inspection.parts for name in part.names}
    folders = any(part.is_a("folder.ImageFolder") for part in case.inspection.parts)
    return folders or {"Image", "open"} <= names
