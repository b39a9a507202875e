"""A recommendation as a patch of the user's source, for the dashboard: not tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..advisors.schema.report_model import LoaderReport, Recommendation
from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean

Diff = Callable[[Path, LoaderReport, Recommendation], str]


def diff_of(path: Path, report: LoaderReport, advice: Recommendation) -> str:
    """The patch, or why there is none. A failure costs the patch, never the screen."""
    from ..experiment.git import top_of
    from ..fixing.patch import make_patch, open_project
    from ..profiler.store.run.run_reader import open_run

    try:
        run = open_run(path)
        root = top_of(Path.cwd()) or Path.cwd()
        return make_patch(run, open_project(run, root), report, advice).diff
    except LoaderscopeError as error:
        return f"no patch: {clean(error, 400)}"
    except Exception as error:
        return f"no patch: {type(error).__name__}: {clean(error, 200)}"
