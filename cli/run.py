"""`loaderscope run`: a script as it is, recorded, and its report."""

from __future__ import annotations

from pathlib import Path

import click

from ..profiler.base.errors import UsageError
from .output import need_terminal
from .script import ScriptCommand, exit_code, report_after


@click.command("run", cls=ScriptCommand, options_metavar="[--live] [--quiet] [--runs DIR]")
@click.option("--live", is_flag=True, help="Show the dashboard while it runs, its output in a pane of its own.")
@click.option("-q", "--quiet", is_flag=True, help="Print no report after the script has ended.")
@click.option("--runs", type=click.Path(path_type=Path, file_okay=False), help="Folder to record into.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def run_verb(live: bool, quiet: bool, runs: Path | None, command: tuple[str, ...]) -> int:
    """Run a script and record every DataLoader it uses.

    The script runs as `python SCRIPT ARGS` would run it: its arguments, output and exit code are its own. Child Python
    processes (torchrun's ranks) are recorded too. The report goes to standard error.

    \b
    Examples:
      loaderscope run train.py --lr 0.1
      loaderscope run --live train.py
      loaderscope run -m package.train --epochs 2
      loaderscope run torchrun --nproc-per-node 2 train.py
    """
    if not command:
        raise UsageError("which script? For example: loaderscope run train.py --lr 0.1")
    if live:
        need_terminal("run --live", "without --live the script runs just the same")
        from ..tui.live import run_live

        code, directory = run_live(list(command), runs)
    else:
        from ..profiler.launch import run_command

        code, directory = run_command(list(command), runs)
    if not quiet:
        report_after(directory)
    return exit_code(code)
