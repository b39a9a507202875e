"""What the source of a data set proves to be slow inside fetching, where no stacks were recorded:
and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....profiler.store.inspection import Part
from ...case.advice import Advice, Outcome, Unmeasured
from ...case.case import Case
from ...case.code_text import identifier
from ...case.fetching import fetch_idle_share, fetch_share, file_suffix, held, names_used
from ...schema.evidence import Evidence, percent, us
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
# Where operations on whole rows take the place of all loops over elements.
WHOLE_LEFT = 0.5
# Of fetch, what a call seen in the source takes at least and at most: where no stacks were taken,
# that is not known.
CALL_SHARE = (0.25, 0.97)
# What takes this long a sample is worth looking into, whatever it is.
UNKNOWN_FROM_US = 200.0

# The kinds of the table that files of a suffix alone prove.
_BY_SUFFIX = ("npz",)


def called(case: Case) -> Hot | None:
    """A known slow function that the source calls for each sample, the most exact one of the table;
    of its part of fetch no more is known than CALL_SHARE."""
    names, suffix = names_used(case), file_suffix(case)
    idle = fetch_idle_share(case)
    if idle is not None and idle > MOST_IDLE:
        return None
    for kind in FUNCTION_KINDS:
        fits = kind.key not in _BY_SUFFIX if suffix is None else suffix in kind.suffixes
        if kind.suffixes and not fits:
            continue
        if any(names >= frozenset(call.split()) for call in kind.called):
            low, high = CALL_SHARE
            return Hot(kind, (low + high) / 2, low, high, None, None, None)
    return None


def in_source(case: Case, sample_us: float) -> Iterator[Outcome]:
    """Without stacks: what the source proves to be slow, and no more."""
    idle = fetch_idle_share(case)
    names = names_used(case)
    evidence: Evidence = {
        "fetch a sample": us(sample_us),
        "share of waiting": percent(fetch_share(case)),
    }
    found = held(case, "dataframe")
    elements = elements_of(case)
    # What lies in memory is not waited for: time without computing is then time without a core.
    if found is not None and names & {"iloc", "loc"}:
        yield _rows(case, found[0], found[1].name, sample_us, evidence)
    elif elements is not None:
        yield _elements(case, *elements, sample_us, evidence)
    elif idle is not None and idle > MOST_IDLE:
        return
    elif sample_us >= UNKNOWN_FROM_US:
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


def _rows(case: Case, part: Part, attribute: str, sample_us: float, evidence: Evidence) -> Advice:
    name = identifier(attribute, "frame")
    rows = max(1, sum(len(_ROWS.findall(line.partition("#")[0])) for line in part.getitem))
    least_us = min(rows * ROW_US[0], (1 - 3 * ROWS_LEFT) * sample_us)
    most_us = min(rows * ROW_US[1], (1 - ROWS_LEFT) * sample_us)
    change = case.change(
        code=rows_code(case), fetch=(1 - most_us / sample_us, 1 - least_us / sample_us)
    )
    return change.advise(
        title=kind_of("rows").title,
        why=(
            f"Each sample takes rows out of the DataFrame {name}, each of which makes a new "
            f"Series: {us(least_us)} to {us(most_us)} of the {us(sample_us)} a sample, with what "
            "is done with it. An array is read in less than a microsecond."
        ),
        evidence={**evidence, "rows are taken with": ".iloc or .loc, seen in the source"},
        caveat=kind_of("rows").caveat,
    )


def _elements(
    case: Case, part: Part, reads: ElementReads, sample_us: float, evidence: Evidence
) -> Advice:
    tensor = reads.attribute.kind == "tensor"
    low, high = ELEMENTS if tensor else ARRAY_ELEMENTS
    if (
        reads.operations is not None and reads.left_us is not None
    ):  # what else the method does is not known
        low, high = min(WHOLE_LEFT, reads.left_us[0] / sample_us), WHOLE_LEFT
    elif reads.left_us is not None:
        low = max(low, min(high, reads.left_us[0] / sample_us))
    name, what = identifier(reads.attribute.name, "values"), "tensor" if tensor else "array"
    return case.change(code=elements_code(case), fetch=(low, high)).advise(
        title=f"Do not read {'a tensor' if tensor else 'an array'} element by element",
        why=f"__getitem__ loops over elements of the {what} {name}: each read makes "
        f"{'a tensor' if tensor else 'a NumPy number'}, many times as slow as an element of a "
        "list.",
        evidence={**evidence, "loop over": f"elements of self.{name}, seen in the source"},
        caveat=kind_of("elements").caveat,
    )
