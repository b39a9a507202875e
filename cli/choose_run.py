"""Which run is meant where none is named."""

from __future__ import annotations

from pathlib import Path


def live_or_named(run: str | None) -> Path:
    """The run of that name; without one, the newest that is live, else the newest. Raises
    RunNotFound."""
    from ..profiler.store.run.run_finder import find_run

    if run is not None:
        return find_run(run)
    from ..profiler.store.run.follow import newest_run
    from ..profiler.store.rundir import runs_directory

    return newest_run(runs_directory()) or find_run("latest")
