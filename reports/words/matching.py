"""Which recorded loader a part of a `Report` is about."""

from __future__ import annotations

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.store.run.run import LoaderRun, Run


def recorded(report: Report, run: Run | None) -> list[tuple[LoaderReport, LoaderRun | None]]:
    """Each loader of the report with its columns; None where the run has none (a report read from
    elsewhere).

    Process ids may repeat between hosts: of several that fit, each is taken once, in the order of
    both.
    """
    left = list(run.loaders) if run is not None else []
    found: list[tuple[LoaderReport, LoaderRun | None]] = []
    for each in report.loaders:
        wanted = (each.pid, each.index, each.rank)
        fits = (one for one in left if (one.pid, one.index, one.rank) == wanted)
        columns = next(fits, None)
        if columns is not None:
            left = [one for one in left if one is not columns]
        found.append((each, columns))
    return found
