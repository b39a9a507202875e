"""Why a run holds no stacks."""

from __future__ import annotations

from collections.abc import Iterable

from ...advisors.schema.report_model import Report
from ...profiler.base.metadata import clean
from ...profiler.run.run import Run


def why_no_stacks(report: Report, run: Run) -> str:
    """The reason there are none, as far as anything of the run tells, with what to do."""
    told: Iterable[str | None] = (
        *(loader.code.reason for loader in report.loaders if loader.code is not None),
        *(burst.reason for system in run.systems for burst in system.bursts),
        *(system.reasons.get("stacks") for system in run.systems),
        *(process.reasons.get("stacks") for process in run.processes),
    )
    found = next((reason for reason in told if reason), None)
    if found is not None:
        return clean(found, 300)
    if run.state == "live":
        return "none were taken yet; `loaderscope stacks` takes some"
    return "none were taken; while a run goes on, `loaderscope stacks` takes some"
