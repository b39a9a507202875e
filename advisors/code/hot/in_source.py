"""What the source of a data set proves to be slow inside fetching, without stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....profiler.store.inspection import Part
from ...case.advice import Advice, Outcome, Unmeasured
from ...case.case import Case
from ...case.code_text import identifier
from ...case.fetching import fetch_idle_share, fetch_share, file_suffix, held, names_used
from ...schema.figures import percent, us
from .element_code import elements_code, elements_of
from .element_reads import ElementReads
from .frame_rows import rows_code
from .function_kinds import FUNCTION_KINDS, kind_of
from .kind import Hot

# Fetching that waits more than this is a matter of storage, not of a function.
MOST_IDLE = 0.5
# What one use of `.iloc` or `.loc` costs, at least and at most: pandas 3 builds a row's Series in
# 28 µs (columns of one type) to 67 µs (of three) on a 2.5 GHz Xeon, and what is done with it costs
# more (a part of it 120 µs, `drop` 480). docs/causes.md, "DataFrame rows", reports > 7 times.
ROW_US = (30.0, 600.0)
_ROWS = re.compile(r"\.i?loc\b")
# Of a sample that takes rows out of a DataFrame, what is left at best.
ROWS_LEFT = 0.05
# docs/causes.md, "Tensor elements one by one".
ELEMENTS = (0.05, 0.8)
ARRAY_ELEMENTS = (0.3, 0.95)
# Where operations on whole rows replace all loops over elements.
WHOLE_LEFT = 0.5
# Of fetch, what a call in the source takes at least and at most if there are no stacks.
CALL_SHARE = (0.25, 0.97)
# From here on, the time of a sample is worth a look, whatever takes it.
UNKNOWN_FROM_US = 200.0


def called(case: Case) -> Hot | None:
    """The most exact kind of slow function that the source calls for each sample."""
    suffix = file_suffix(case)
    if (fetch_idle_share(case) or 0.0) > MOST_IDLE:
        return None
    used = names_used(case) | {suffix or ""}
    for kind in FUNCTION_KINDS:
        other = suffix is not None and kind.suffixes and suffix not in kind.suffixes
        if not other and kind.is_called(used):
            low, high = CALL_SHARE
            return Hot(kind, (low + high) / 2, low, high, None, None, None)
    return None


def in_source(case: Case, sample_us: float) -> Iterator[Outcome]:
    """What the source proves to be slow, and no more."""
    evidence = {"fetch a sample": us(sample_us), "share of waiting": percent(fetch_share(case))}
    frame, elements = held(case, "dataframe"), elements_of(case)
    # Data in memory is not waited for: fetching that is idle then waits for a core.
    if frame is not None and names_used(case) & {"iloc", "loc"}:
        yield _rows(case, frame[0], frame[1].name, sample_us, evidence)
    elif elements is not None:
        yield _elements(case, elements[1], sample_us, evidence)
    elif (fetch_idle_share(case) or 0.0) <= MOST_IDLE and sample_us >= UNKNOWN_FROM_US:
        yield Unmeasured(_no_stacks(case, sample_us))


def _no_stacks(case: Case, sample_us: float) -> str:
    code = case.report.code
    seen = code.stages["fetch"].samples if code is not None and "fetch" in code.stages else 0
    if seen:
        samples = "samples of fetch are" if seen > 1 else "sample of fetch is"
        return (
            f"{seen} stack {samples} too few to tell what takes {us(sample_us)} a sample: record "
            "for longer, or run `loaderscope stacks` while it trains"
        )
    reason = f" ({code.reason})" if code is not None and code.reason else ""
    return (
        f"stacks were not recorded{reason}, so what takes the {us(sample_us)} a sample inside "
        "fetch is not known: run `loaderscope stacks` while it trains, or record a run of a few "
        "seconds with LOADERSCOPE_STACKS=eager"
    )


def _rows(
    case: Case, part: Part, attribute: str, sample_us: float, evidence: Mapping[str, str]
) -> Advice:
    rows = max(1, sum(len(_ROWS.findall(line.partition("#")[0])) for line in part.getitem))
    least_us = min(rows * ROW_US[0], (1 - 3 * ROWS_LEFT) * sample_us)
    most_us = min(rows * ROW_US[1], (1 - ROWS_LEFT) * sample_us)
    left = (1 - most_us / sample_us, 1 - least_us / sample_us)
    return case.change(code=rows_code(case), fetch=left).advise(
        title=kind_of("rows").title,
        why=(
            f"Each sample takes rows out of the DataFrame {identifier(attribute, 'frame')}, and "
            f"each row is a new Series: {us(least_us)} to {us(most_us)} of the {us(sample_us)} a "
            "sample, with what is done with it. An array is read in less than a microsecond."
        ),
        evidence={**evidence, "rows are taken with": ".iloc or .loc, seen in the source"},
        caveat=kind_of("rows").caveat,
    )


def _elements(
    case: Case, reads: ElementReads, sample_us: float, evidence: Mapping[str, str]
) -> Advice:
    tensor = reads.attribute.kind == "tensor"
    low, high = ELEMENTS if tensor else ARRAY_ELEMENTS
    least = reads.left_us[0] / sample_us if reads.left_us is not None else 0.0
    if reads.operations is not None:  # what else the method does is not known
        low, high = min(WHOLE_LEFT, least), WHOLE_LEFT
    else:
        low = max(low, min(high, least))
    what, number = ("tensor", "a tensor") if tensor else ("array", "a NumPy number")
    name = identifier(reads.attribute.name, "values")
    return case.change(code=elements_code(case), fetch=(low, high)).advise(
        title=f"Do not read {'a' if tensor else 'an'} {what} element by element",
        why=f"__getitem__ loops over elements of the {what} {name}: each read makes {number}, many "
        "times as slow as an element of a list.",
        evidence={**evidence, "loop over": f"elements of self.{name}, seen in the source"},
        caveat=kind_of("elements").caveat,
    )
