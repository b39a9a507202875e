"""`loaderscope top`: the dashboard."""

import click

from .output import live_or_named, need_terminal


@click.command("top", short_help="Watch a run live, or look at one again, in the terminal.")
@click.argument("run", required=False)
def top_verb(run: str | None) -> int:
    """Show a run in the terminal, live while it goes on.

    RUN is an id as `loaderscope list` shows it, the beginning of one, "latest", or a path. Without
    it, the newest run that is live, else the newest. Nothing is asked of the training process: only
    its run directory is read.

    \b
    Examples:
      loaderscope top
      loaderscope top 20250131-0915
    """
    path = live_or_named(run)
    from ..profiler.store.run.run_reader import read_run_json

    read_run_json(path)  # an error is shown before the screen is taken
    need_terminal("top", "`loaderscope report` writes to a file or a pipe")
    from ..tui.app import Dashboard

    dashboard = Dashboard(path)
    try:
        dashboard.run()
    finally:
        dashboard.end_work()
    return 0
