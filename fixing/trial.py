"""A patch tried: the recorded command with and without it."""

from pathlib import Path
from typing import Any

from ..experiment.change import Change
from ..experiment.result import TryResult
from ..experiment.try_change import try_change
from ..profiler.base.errors import UsageError
from ..profiler.store.making import read_sources
from ..profiler.store.run.run import Run
from .patch import Patch


def try_patch(run: Run, patch: Patch, root: Path, **how: Any) -> TryResult:
    """Run the command of the run in copies of the project, with and without the patch, in turns.

    `how`: `options`, `ask` and `say` of `try_change`. Raises UsageError where it cannot be run.
    """
    script, here = command_of(run)
    change = Change(root.resolve(), patch=patch.diff)
    return try_change(script, change, here=here, **how)


def command_of(run: Run) -> tuple[list[str], Path]:
    """(as on the command line of `loaderscope run`, the folder it was called in). Raises
    UsageError."""
    for process in run.processes:
        sources = read_sources(process.path)
        if sources.cwd and run.argv:
            script = [run.argv[0]] if not sources.module else ["-m", sources.module]
            return [*script, *run.argv[1:]], Path(sources.cwd)
    raise UsageError("the run does not say which command it was: try it by hand, --no-check")


def holds(patch: Patch, found: TryResult) -> bool:
    """Whether the patch does what is promised of it: it runs, it is not slower, and where the
    batches must be the same they are."""
    if found.error is not None or found.slower:
        return False
    return found.same_batches is True or not patch.same_batches
