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
from .better_calls import better_call
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


def make_cheaper(case: Case, stage: str, line: Part | OwnLine, evidence: Evidence) -> Advice:
    """That this line of a stage is to be made cheaper, by hand: with the call that does the same
    faster, where one is known. Otherwise the gain is what the loop gains if all of the stage or
    most of the line is done in advance; of a random line, if it costs nothing or as much."""
    text, share, better = clean(line.text or "", 80), line.share, better_call(line.text, line.call)
    costs = line_costs(stage, line)
    evidence = {f"part of {stage}": percent(share.mid), **evidence, "line": line.place}

    def change(do: str, *left: float) -> Advice:
        at = f" ({line.place})" if line.place is not None else ""
        stages: dict[str, Any] = {stage: left}
        return case.change(code=f"# By hand{at}: {do}\n#     {text}\n", **stages)

    if better is not None:
        best, worst = better.left
        changed = change(better.do, 1 - share.high * (1 - best), 1 - share.low * (1 - worst))
        return changed.advise(f"{better.title}: {text}", f"{costs}.", evidence)
    # What draws differs from epoch to epoch.
    drawn = (
        CHANCE.search(f"{line.text} {line.call} {_source_of(case, line.text or '')}") is not None
    )
    changed = change(AVOID, *((1 - share.high, 1.0) if drawn else (0.0, 1 - SAVES * share.low)))
    unneeded: dict[str, Any] = {stage: (1 - share.high, 1 - share.low)}  # as the finding says it
    free = min(case.predict(**unneeded).mid, case.report.headroom or math.inf)
    do = "avoid it" if drawn else "do it once in advance"
    return changed.advise(
        f"Make this cheaper, or {do}: {text}",
        f"{costs}. No better alternative is known for it. If it cost nothing, "
        f"the loop would run {times(free)} as fast.",
        evidence,
        by_hand=True,
    )


def _source_of(case: Case, function: str) -> str:
    """The source of this function of the data set's ('Data.augment'), "" where it is none."""
    head = re.compile(rf"\s*def {re.escape(function.rpartition('.')[2])}\(")
    methods = [each for part in case.inspection.parts for each in (part.getitem, *part.helpers)]
    return "\n".join("\n".join(each) for each in methods if each and head.match(each[0]))
