"""`loaderscope list`: the recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import runs_option, show

if TYPE_CHECKING:
    from ..advisors.schema.report_model import LoaderReport
    from ..profiler.store.run.run_list import RunEntry


@click.command("list")
@click.option(
    "-n", "--number", type=click.IntRange(min=1), default=20, show_default=True, help="Max runs."
)
@runs_option("Folder of the runs.", is_folder=True)
def list_verb(number: int, runs: Path | None) -> int:
    """List the recorded runs, newest first, each with the loader that costs it most: the verdict,
    and what the first advice would gain.

    \b
    Examples:
      loaderscope list
      loaderscope list -n 5
    """
    from ..profiler.store.run.run_list import list_runs
    from ..profiler.store.rundir import runs_directory
    from ..reports.document.listings import run_list

    where = runs_directory() if runs is None else runs
    entries = list_runs(where, number)
    if entries:
        show(run_list([(entry, _costliest(entry)) for entry in entries], str(where)))
    else:
        click.echo(f"No runs in {where} yet. Try: loaderscope run your_script.py")
    return 0


def _costliest(entry: RunEntry) -> LoaderReport | None:
    """The loader of the run that loading cost most."""
    from ..advisors.assemble.build_report import build_report
    from ..advisors.assemble.job import open_job
    from ..profiler.base.errors import LoaderscopeError

    if entry.problem is not None:
        return None
    try:
        return next(iter(build_report(open_job(entry.path)).costliest), None)
    except LoaderscopeError:
        return None
