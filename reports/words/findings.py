"""What a loader's waiting is made of, in words."""

from __future__ import annotations

from ...advisors.case.workers import WAITS_FOR
from ...advisors.schema.report_model import Doing, Finding, LoaderReport
from ...profiler.base.metadata import clean
from .units import factor, percent

STAGES = {
    "index": "drawing indices",
    "fetch": "fetching samples",
    "collate": "collating",
    "transfer": "handing batches over from the workers",
    "pin": "copying to page-locked memory",
    "startup": "starting, until the first batch of each epoch",
    "other": "the DataLoader's own work between batches",
    "unknown": "what the iterable does for a batch (it is no DataLoader: not recorded in detail)",
}
LEAST_GAIN = 1.05  # of what would be free, to be worth saying
LEAST_DOING = 0.1  # of a finding, to be said


def doing_text(found: Doing) -> str:
    """'waits for a lock shared by 4 workers, 93 %'"""
    what = "sleeps" if found.kind == "sleep" else f"waits {WAITS_FOR[found.kind]}"
    if found.processes > 1:
        what += f" shared by {found.processes} workers"
    if found.what:
        what += f" {clean(found.what, 60)}"
    return f"{what}, {percent(found.share)}"


def finding_text(found: Finding) -> str:
    """'`gc.collect()` data.py:610, 100 % of fetch; without it ×628'"""
    if found.stage == "transfer" or not found.text:
        what = STAGES.get(found.stage, found.stage)
        what += f" (pickling {clean(found.text, 90)})" if found.text else ""
        what += f", {percent(found.waiting_share)} of the wait"
    else:
        code = found.place
        what = f"`{clean(found.text, 60)}`" if code else clean(found.text, 60)
        what += f" {clean(found.place, 60)}" if code else ""
        what += f" ({clean(found.call, 60)})" if found.call else ""
        of = "all time, in the loop itself" if found.stage == "compute" else found.stage
        what += f", {percent(found.share.mid)} of {of}"
    waits = [each for each in found.doing if each.kind in WAITS_FOR and each.share >= LEAST_DOING]
    if waits:
        what += f" ({'; '.join(map(doing_text, waits[:2]))})"
    if found.factor and found.factor.mid >= LEAST_GAIN:
        what += f"; without it {factor(found.factor.mid)}"
    return what


def what_costs(loader: LoaderReport) -> str | None:
    """'What costs: …': the leading finding. None where nothing stands out."""
    return f"What costs: {finding_text(loader.findings[0])}." if loader.findings else None
