"""Advice about a line that costs, and that a person has to change."""

import math
import re
import textwrap
from itertools import pairwise
from typing import Any

import numpy as np

from ...profiler.base.metadata import clean
from ...profiler.store.sampled_fetches import SampleField
from ..case.advice import Advice
from ..case.case import Case
from ..case.code_text import Source
from ..case.fetching import makes_the_same, room_of, sample_bytes
from ..schema.evidence import Evidence, percent, size, us
from ..stacks.stage_parts import Part
from .batched.drawn import own_collate
from .better_calls import Better, better_call
from .hot.kind import Hot
from .hot.own_lines import OwnLine
from .loader_code import loader_code
from .loader_form import form_of
from .shapes import ONE_BY_ONE, Shape
from .template import code_from

# What is done in advance saves nearly all of a line, and most of what stands around it: in 20
# cases of the casebook, the engineer's fix left a median of 4 % of the stage.
SAVES = 0.9
# Samples that are kept take at most this part of the memory that is left, and µs each; copies
# take a few µs for each of up to ten tensors, and copy this many bytes a µs.
KEPT_OF_ROOM, KEPT_US, COPIED_US, COPIED_BYTES = 0.5, (0.1, 1.0), (2.0, 60.0), (1e4, 1e3)
# What can be copied without a thought.
PLAIN = ("tensor", "ndarray", "number", "text", "none")
# Of what each epoch makes the same of.
OR_ONCE = ", or do it once in advance"
AVOID = "do this once before training and keep the result, avoid it, or make it cheaper."
# A stage that takes longer in each fifth of a run, and in the last this many times as long as in
# the first: clocks and neighbours vary less, and not in one direction.
GROWN, LEAST_RISE, LEAST_BATCHES = 1.5, 1.02, 50
GROWING = Better(
    "",
    "Stop this from taking longer with each batch",
    "keep only what is needed (a sum, the last items, a dict, a position) of what this goes "
    "through, keeps or writes.",
    (0.0, 0.3),
)


def at(place: str | None) -> str:
    """' (train.py:41)', where that is known."""
    return f" ({place})" if place else ""


def line_costs(stage: str, line: Part | OwnLine) -> str:
    """'`line` (train.py:41) takes 90 % of fetch, in PIL's decode'."""
    where = at(line.place)
    below = f", in {line.call}" if line.call else ""
    if isinstance(line, OwnLine) and line.alike:
        where += f", with {line.alike} more line{'s' * (line.alike > 1)} like it,"
        below = ""
    return (
        f"`{clean(line.text or '', 80)}`{where} takes {percent(line.share.mid)} of {stage}{below}"
    )


def make_cheaper(
    case: Case,
    stage: str,
    line: Part | OwnLine,
    evidence: Evidence,
    grown: tuple[float, float] | None = None,
    better: Better | None = None,
    again: bool = False,
) -> Advice:
    """That this line of a stage is to be made cheaper, by hand: that it is to stop growing, if it
    has `grown`, or with the call that does the same faster, where one is known. Otherwise the gain
    is what the loop gains if most of the line goes; if `again`, all of the stage may: each epoch is
    known to make the same of it."""
    text, share = clean(line.text or "", 80), line.share
    better = better or better_call(line.text, line.call)
    costs = line_costs(stage, line)
    if grown is not None:
        first, last = map(us, grown)
        costs += f". The stage took {first} per batch at first and {last} in the end"
        better = GROWING
    title, do = "Make this cheaper, or avoid it", AVOID
    why, left = ". No better alternative is known for it", (1 - share.high, 1 - SAVES * share.low)
    if again and stage == "fetch" and (not better or better.title.endswith("or once")):
        kept = kept_samples(case, costs, evidence, text)
        if kept:
            return kept
    if better is not None:
        title, do, why, left = better.title, better.do, "", better.remains(share)
        title += OR_ONCE * (again and "once" not in title)
    elif again:
        title = "Do this once in advance, not in each epoch"
        do = "keep the result, in memory or in a file for each sample, and read that instead."
        why, left = ", and each epoch makes the same of it", (0.0, left[1])
    head = textwrap.fill(f"# By hand{at(line.place)}: {do}", 100, subsequent_indent="# ")
    stages: dict[str, Any] = {stage: left}
    return case.change(code=f"{head}\n#     {text}\n", **stages).advise(
        f"{title}: {text}",
        f"{costs}{why}.",
        {f"part of {stage}": percent(share.mid), **evidence, "line": line.place},
        by_hand=better is None and not again,
    )


def kept_samples(case: Case, why: str, evidence: Evidence, what: str) -> Advice | None:
    """To keep all samples in memory, if each epoch makes the same ones and they fit; None
    otherwise. A collate function of the user's, which may change samples, gets copies."""
    fields, each = case.loader.looks.fields, sample_bytes(case) or 0.0
    form, copied = form_of(case), own_collate(case)
    if copied:
        each = max(each, sum(math.prod(field.shape or (0,)) * _width(field) for field in fields))
    all_bytes = each * (case.dataset_len or 0)
    free, where = room_of(case)
    fits = 0 < all_bytes <= KEPT_OF_ROOM * free and makes_the_same(case)
    plain = {field.kind for field in fields} <= {*PLAIN}
    unknown = form.by_hand or form.batching == "none" or (copied and not (fields and plain))
    if not fits or unknown:
        return None
    name = "CopiedSamples" if copied else "KeptSamples"
    call = loader_code(case, dataset=Source(f"{name}(dataset)"), num_workers=0)
    rows = (case.report.samples or 0) / max(1, case.report.batches)
    taken = KEPT_US
    if copied:
        taken = COPIED_US[0] + each / COPIED_BYTES[0], COPIED_US[1] + each / COPIED_BYTES[1]
    low, high = (sample_us * rows for sample_us in taken)
    code = code_from("once", name, then=f"{call}\n")
    return case.change(code=code, num_workers=0, fetch_us=(low, high)).advise(
        f"Make each sample once, and keep it in memory: {what}",
        f"{why}, and each epoch makes the same of it. All samples come to about {size(all_bytes)}, "
        f"and {size(free)} of {where} are free. The first epoch still makes them.",
        evidence,
        caveat="The loop must not change the data set between epochs, as a curriculum does.",
    )


def _width(field: SampleField) -> int:
    """Bytes of a value of a tensor or array; of another type at most 8."""
    bits = re.search(r"\d+$", field.dtype or "")
    return int(bits[0]) // 8 if bits else 8


def known_call(case: Case, stage: str, hot: Hot, taken_us: float, evidence: Evidence) -> Advice:
    """What to use in place of a known function, in this stage that takes so long."""
    kind = hot.family
    left: dict[str, Any] = {stage: hot.left(taken_us)}
    return case.change(code=kind.code(case, hot), **left).advise(
        kind.title,
        f"{percent(hot.share)} of {stage} goes into {kind.name}{hot.called_from}. {kind.why}",
        evidence,
        caveat=kind.caveat,
        effort=kind.effort,
    )


def shaped(case: Case, stage: str, line: OwnLine, shape: Shape, evidence: Evidence) -> Advice:
    """A line of a stage of which the source says what is wrong, and what is gained if that goes
    away."""
    share = line.share
    # Who does a line's work otherwise changes what stands around it too (see SAVES).
    left = 1 - share.high if shape.waste else 0.0, 1 - share.low * shape.saves
    stages: dict[str, Any] = {stage: left}
    code = f"# By hand{at(line.place)}: {shape.do}\n#     {clean(line.line, 100)}\n"
    title = shape.title
    if (not shape.waste or shape.key == ONE_BY_ONE) and (
        line.repeats(line.line) or (stage == "fetch" and makes_the_same(case))
    ):
        title += OR_ONCE
    return case.change(code=code, **stages).advise(
        f"{title}: {clean(line.text, 80)}",
        f"{line_costs(stage, line)}{shape.why}.",
        {f"part of {stage}": percent(share.mid), **evidence, "line": line.place},
        caveat=shape.caveat,
    )


def grows(case: Case, stage: str) -> tuple[float, float] | None:
    """How long this stage of a batch took in the first fifth of the run, or of its epochs, and in
    the last (medians, µs). None if it did not take longer in each fifth, or if the loop's own time
    or the batches grew as well."""
    batches = case.loader.batches
    by_epoch = np.argsort(batches["epoch"], kind="stable")
    _, sizes = np.unique(batches["epoch"], return_counts=True)
    place = np.concatenate([np.arange(size) for size in sizes] or [sizes])
    for order in (np.arange(len(place)), by_epoch[np.argsort(place, kind="stable")]):
        times, computes, nbytes = (
            [float(np.median(each[each > 0])) if (each > 0).any() else 0.0 for each in fifths]
            for fifths in (
                np.array_split(batches[name][order], 5)
                for name in (f"{stage}_ns", "compute_ns", "bytes")
            )
        )
        least = GROWN * max([1.0, *(each[-1] / each[0] for each in (computes, nbytes) if each[0])])
        rises = all(b > LEAST_RISE * a for a, b in pairwise(times))
        if len(place) >= LEAST_BATCHES and times[0] and rises and times[-1] >= least * times[0]:
            return times[0] / 1e3, times[-1] / 1e3
    return None
