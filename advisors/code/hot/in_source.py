"""What the source of a data set proves to be slow inside fetching, without stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ...case.advice import Outcome, Unmeasured
from ...case.case import Case
from ...case.fetching import fetch_idle_share, file_suffix, held, names_used, sample_time_us
from ...schema.figures import us
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
# Of fetch, what a call in the source takes at least and at most if there are no stacks.
CALL_SHARE = (0.25, 0.97)
# From here on, the time of a sample is worth a look, whatever takes it.
UNKNOWN_FROM_US = 200.0


def called(case: Case) -> Hot | None:
    """The slow function that the source proves for each sample, the most exact one of the table."""
    sample_us, suffix, names = sample_time_us(case) or 1.0, file_suffix(case), names_used(case)
    frame = held(case, "dataframe")
    # Data in memory is not waited for: fetching that is idle then waits for a core.
    if frame is not None and names & {"iloc", "loc"}:
        lines = (line.partition("#")[0] for line in frame[0].getitem)
        rows = max(1, sum(len(_ROWS.findall(line)) for line in lines))
        low, high = (min(1.0, rows * each / sample_us) for each in ROW_US)
        low, high = min(low, 1 - 3 * ROWS_LEFT), min(high, 1 - ROWS_LEFT)
        kind = replace(kind_of("rows"), left=(0.0, 0.0))
        return Hot(kind, (low + high) / 2, low, high)
    if (fetch_idle_share(case) or 0.0) > MOST_IDLE:
        return None
    for kind in FUNCTION_KINDS:
        other = suffix is not None and kind.suffixes and suffix not in kind.suffixes
        if not other and kind.is_called(names | {suffix or ""}):
            low, high = CALL_SHARE
            return Hot(kind, (low + high) / 2, low, high)
    return None


def in_source(case: Case, sample_us: float) -> Iterator[Outcome]:
    """That there are no stacks, where nothing is proven and a sample takes long."""
    idle = (fetch_idle_share(case) or 0.0) > MOST_IDLE
    if called(case) is None and not idle and sample_us >= UNKNOWN_FROM_US:
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
