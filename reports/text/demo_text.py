"""Two runs of one training loop, in two lines."""

from __future__ import annotations

from ...advisors.schema.report_model import LoaderReport, Report
from ..words.units import factor, percent, rate


def render_speedup(before: Report, after: Report) -> str:
    """The measured throughput of the first loader of each report, and their ratio."""
    if not before.loaders or not after.loaders:
        return "Nothing to compare: one of the runs recorded no loader.\n"
    first, second = before.loaders[0], after.loaders[0]
    ratio = None
    if first.batches_per_s and second.batches_per_s:
        ratio = second.batches_per_s / first.batches_per_s
    return (
        f"before  {_line(first)}\nafter   {_line(second)}: {factor(ratio)} the throughput, "
        "measured\n"
    )


def _line(loader: LoaderReport) -> str:
    return (
        f"{rate(loader.samples_per_s)} samples/s, waiting {percent(loader.stages['wait'].share)} "
        "of the time"
    )
