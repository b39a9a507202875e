"""`loaderscope list`: the recorded runs."""

from __future__ import annotations

import click

from .output import show

LIST_LIMIT = 20


@click.command("list")
@click.option("-n", "--number", type=click.IntRange(min=1), default=LIST_LIMIT, show_default=True, help="Show so many.")
def list_verb(number: int) -> int:
    """List the recorded runs, newest first.

    \b
    Example:
      loaderscope list -n 5
    """
    from ..profiler.run.run_list import list_runs
    from ..profiler.session.rundir import runs_directory
    from ..reports.text.run_list import render_list

    where = runs_directory()
    entries = list_runs(where, number)
    if not entries:
        click.echo(f"No runs in {where} yet. Try: loaderscope run your_script.py")
        return 0
    show(render_list, entries)
    return 0
