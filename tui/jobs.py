"""Work that lasts seconds, in threads: stacks of a live run, and advice as a patch. A failure costs
what was asked for, never the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..advisors.schema.report_model import LoaderReport, Recommendation
from ..profiler.base.endable_thread import EndableThread
from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean
from ..profiler.store.stacks.stack_samples import StackCapture
from ..reports.words.units import plural

Take = Callable[[Path], StackCapture]
Diff = Callable[[Path, LoaderReport, Recommendation], str]


class Jobs:
    """One thread for each kind of work; `later` calls a function in the dashboard's."""

    def __init__(self, later: Callable[..., Any]) -> None:
        self._later = later
        self.threads: dict[str, EndableThread] = {}

    def start(self, kind: str, work: Callable[[], Any], done: Callable[[Any], None]) -> bool:
        """Hand what `work` returns to `done`. False where work of this kind is under way."""
        if kind in self.threads:
            return False
        self.threads[kind] = thread = EndableThread(
            target=lambda: self._later(self._end_of, kind, done, work()),
            name=f"loaderscope-{kind}",
            daemon=True,
        )
        thread.start()
        return True

    def _end_of(self, kind: str, done: Callable[[Any], None], result: Any) -> None:
        del self.threads[kind]
        done(result)

    def end(self) -> None:
        """All that is under way is given up."""
        for thread in self.threads.values():
            thread.end()


@dataclass(frozen=True)
class Taken:
    """How taking stacks went, in words; `done` is None while it goes on."""

    done: bool | None
    said: str


def taken(path: Path, take: Take) -> Taken:
    """Take stacks once."""
    try:
        samples = take(path).samples
    except Exception as error:
        return Taken(False, _why("no stacks", error))
    counted = plural(sum(samples.values()), "sample", "samples")
    return Taken(True, f"taken: {counted} of {plural(len(samples), 'process', 'processes')}")


def diff_of(path: Path, report: LoaderReport, advice: Recommendation) -> str:
    """The advice as a patch of the user's source, not tried; or why there is none."""
    from ..experiment.git import project_folder
    from ..fixing.patch import make_patch, open_project
    from ..profiler.store.run.run_reader import open_run

    try:
        run = open_run(path)
        root = project_folder(Path.cwd())
        return make_patch(run, open_project(run, root), report, advice).diff
    except Exception as error:
        return _why("no patch", error)


def _why(lacking: str, error: Exception) -> str:
    """What our own errors say is a sentence; others are named too."""
    kind = "" if isinstance(error, LoaderscopeError) else f"{type(error).__name__}: "
    return f"{lacking}: {kind}{clean(error, 400)}"
