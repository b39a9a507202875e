"""What a loader is for, where and how its run went, and which recorded loader a report is about."""

from __future__ import annotations

from collections import defaultdict

from ...advisors.code.dialects import NAMES
from ...advisors.schema.report_model import LoaderReport, Report, RunInfo, Scalar
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, Run


def use_of(loader: LoaderReport | LoaderRun) -> str | None:
    """'training (train.py:41), Lightning, made at data.py:12', as far as it is known."""
    phase, place, framework = (loader.config.get(name) for name in ("phase", "place", "framework"))
    at = loader.made_at if isinstance(loader, LoaderReport) else loader.made.place
    made = f"made at {clean(at, 60)}" if at else None
    said = clean(phase, 60) if isinstance(phase, str) else None
    if place and said:
        said = f"{said} ({clean(place, 60)})"
    elif place and place != at:
        said = f"used at {clean(place, 60)}"
    by = NAMES.get(framework) if isinstance(framework, str) else None
    return ", ".join(filter(None, (said, by, made))) or None


def run_facts(run: RunInfo) -> dict[str, Scalar]:
    """What two runs may differ in besides their loaders."""
    return {
        "command": " ".join(run.argv) or None,
        "host": run.host,
        "devices": ", ".join(run.devices) or None,
        "processes": run.processes,
        "world size": run.world_size,
        "platform": run.platform,
        "Python": run.python,
        "torch": run.torch,
        "Loaderscope": run.loaderscope,
    }


def recorded(report: Report, run: Run | None) -> list[tuple[LoaderReport, LoaderRun | None]]:
    """Each loader of the report with its columns; None where the run has none (a report read from
    elsewhere).

    Process ids may repeat between hosts: of several that fit, each is taken once, in the order of
    both.
    """
    left: dict[object, list[LoaderRun]] = defaultdict(list)
    for one in run.loaders if run else ():
        left[one.pid, one.index, one.rank].append(one)
    fits = [left[each.pid, each.index, each.rank] for each in report.loaders]
    pairs = zip(report.loaders, fits, strict=True)
    return [(each, found.pop(0) if found else None) for each, found in pairs]
