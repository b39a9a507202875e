"""Advice about a line that costs, and for which no better way is known."""

from __future__ import annotations

import math
import re
from typing import Any

from ...profiler.base.metadata import clean
from ..case.advice import Advice
from ..case.case import Case
from ..schema.evidence import Evidence, percent, times
from ..stacks.stage_parts import Part
from .hot.own_lines import OwnLine
from .shapes import CHANCE

# What is done in advance saves nearly all of a line, and most of what stands around it: in 20
# cases of the casebook, the engineer's fix left a median of 4 % of the stage.
SAVES = 0.9
AVOID = "do this once before training and keep the result, avoid it, or make it cheaper."


def line_costs(stage: str, line: Part | OwnLine) -> str:
    """'`line` (train.py:41) takes 90 % of fetch, in PIL's decode'."""
    at = f" ({line.place})" if line.place is not None else ""
    below = f", in {line.call}" if line.call is not None else ""
    if isinstance(line, OwnLine) and line.alike:
        at += f", with {line.alike} more line{'s' * (line.alike > 1)} like it,"
        below = ""
    return f"`{clean(line.text or '', 80)}`{at} takes {percent(line.share.mid)} of {stage}{below}"


def make_cheaper(case: Case, stage: str, line: Part, evidence: Evidence) -> Advice:
    """That this line of a stage is to be made cheaper, by hand: what the loop gains if all of the
    stage or most of the line is done in advance; of a random line, if it costs nothing or as
    much."""
    text, share = line.text or "", line.share
    at = f" ({line.place})" if line.place is not None else ""
    # What draws differs from epoch to epoch.
    drawn = CHANCE.search(f"{text} {line.call} {_source_of(case, text)}") is not None
    code = f"# By hand{at}: {AVOID}\n#     {clean(text, 80)}\n"
    left: dict[str, Any] = {stage: (1 - share.high, 1.0) if drawn else (0.0, 1 - SAVES * share.low)}
    change = case.change(code=code, **left)
    unneeded: dict[str, Any] = {stage: (1 - share.high, 1 - share.low)}  # as the finding says it
    free = min(case.predict(**unneeded).mid, case.report.headroom or math.inf)
    do = "avoid it" if drawn else "do it once in advance"
    return change.advise(
        f"Make this cheaper, or {do}: {clean(text, 80)}",
        f"{line_costs(stage, line)}. No better alternative is known for it. If it cost nothing, "
        f"the loop would run {times(free)} as fast.",
        {f"part of {stage}": percent(share.mid), **evidence, "line": line.place},
        by_hand=True,
    )


def _source_of(case: Case, function: str) -> str:
    """The source of this function of the data set's ('Data.augment'), "" where it is none."""
    head = re.compile(rf"\s*def {re.escape(function.rpartition('.')[2])}\(")
    methods = [each for part in case.inspection.parts for each in (part.getitem, *part.helpers)]
    return "\n".join("\n".join(each) for each in methods if each and head.match(each[0]))
