"""Which recorded loader a part of a `Report` is about."""

from __future__ import annotations

from ...advisors.schema.report_model import Report
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run

Recorded = tuple[ProcessRun, LoaderRun]


def recorded(report: Report, run: Run) -> list[Recorded | None]:
    """For each loader of the report its columns, None where the run has none (a report read from
    elsewhere).

    Process ids may repeat between hosts: of several that fit, each is taken once, in the order of
    both.
    """
    left = [(process, loader) for process in run.processes for loader in process.loaders]
    found: list[Recorded | None] = []
    for each in report.loaders:
        wanted = (each.pid, each.index, each.rank)
        at = next(
            (
                i
                for i, (_, loader) in enumerate(left)
                if (loader.pid, loader.index, loader.rank) == wanted
            ),
            None,
        )
        found.append(left.pop(at) if at is not None else None)
    return found
