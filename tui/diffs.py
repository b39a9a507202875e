"""A recommendation as a patch of the user's source, for the dashboard: not tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..advisors.schema.report_model import LoaderReport, Recommendation
from ..profiler.base.endable_thread import EndableThread
from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean
from .screens import Advice

Diff = Callable[[Path, LoaderReport, Recommendation], str]


def diff_of(path: Path, report: LoaderReport, advice: Recommendation) -> str:
    """The patch, or why there is none. A failure costs the patch, never the screen."""
    from ..experiment.git import project_folder
    from ..fixing.patch import make_patch, open_project
    from ..profiler.store.run.run_reader import open_run

    try:
        run = open_run(path)
        root = project_folder(Path.cwd())
        return make_patch(run, open_project(run, root), report, advice).diff
    except LoaderscopeError as error:
        return f"no patch: {clean(error, 400)}"
    except Exception as error:
        return f"no patch: {type(error).__name__}: {clean(error, 200)}"


class Patches:
    """Makes patches one at a time, in a thread; `later` calls a function in the dashboard's."""

    def __init__(self, path: Path, diff: Diff, later: Callable[..., Any]) -> None:
        self._path, self.diff, self._later = path, diff, later
        self.thread: EndableThread | None = None

    def show(self, view: Advice, report: LoaderReport) -> bool:
        """Show what is looked at as a patch, or hide that again. False where it is no advice."""
        advice = view.target
        if not isinstance(advice, Recommendation):
            return False
        if view.patch is not None:
            view.say(advice, None)
        elif self.thread is None:
            view.say(advice, "making the patch…")
            self.thread = EndableThread(
                target=lambda: self._later(
                    self._made, view, advice, self.diff(self._path, report, advice)
                ),
                name="loaderscope-diff",
                daemon=True,
            )
            self.thread.start()
        return True

    def _made(self, view: Advice, advice: Recommendation, patch: str) -> None:
        self.thread = None
        view.say(advice, patch)

    def end(self) -> None:
        """The patch being made is given up."""
        if self.thread is not None:
            self.thread.end()
