"""`loaderscope run`: a script as it is, recorded, and its report."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..profiler.base.errors import LoaderscopeError, UsageError
from .output import need_terminal, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..integrations.scalar_backends import Backend
    from ..profiler.launch import Beside


_METRICS = "While it runs, figures go to prometheus:FILE.prom or tensorboard:FOLDER; may be given twice."


class _ScriptCommand(click.Command):
    """Leaves everything from the script's name (or -m, or -c) on to the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-m", "-c", "--", "-"):
            at += 2 if args[at] in takes_value else 1
        if at < len(args) and args[at] != "--":
            args = [*args[:at], "--", *args[at:]]
        return super().parse_args(ctx, args)


@click.command("run", cls=_ScriptCommand, options_metavar="[--live] [--quiet] [--runs DIR] [--metrics KIND:PATH]")
@click.option("--live", is_flag=True, help="Show the dashboard while it runs, its output in a pane of its own.")
@click.option("-q", "--quiet", is_flag=True, help="Print no report after the script has ended.")
@click.option("--runs", type=click.Path(path_type=Path, file_okay=False), help="Folder to record into.")
@click.option("--metrics", multiple=True, metavar="KIND:PATH", help=_METRICS)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def run_verb(live: bool, quiet: bool, runs: Path | None, metrics: tuple[str, ...], command: tuple[str, ...]) -> int:
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
    beside = _handing_on(metrics)
    if live:
        need_terminal("run --live", "without --live the script runs just the same")
        from ..tui.live import run_live

        code, directory = run_live(list(command), runs, beside)
    else:
        from ..profiler.launch import run_command

        code, directory = run_command(list(command), runs, beside)
    if not quiet:
        _report_after(directory)
    return code if code >= 0 else 128 - code  # ended by a signal: as shells say it


def _handing_on(wanted: tuple[str, ...]) -> Beside:
    """What hands the run's figures on while it lasts. Raises UsageError for what cannot be meant."""
    if not wanted:
        return nullcontext
    from ..integrations.scalars import Live, Prometheus, TensorBoard

    kinds: dict[str, Callable[[str], Backend]] = {"prometheus": Prometheus, "tensorboard": TensorBoard}
    backends: list[Backend] = []
    for each in wanted:
        kind, _, path = each.partition(":")
        if kind not in kinds or not path:
            raise UsageError(f"--metrics {each} names no place: write prometheus:FILE.prom or tensorboard:FOLDER")
        backends.append(kinds[kind](path))
    return lambda directory: Live(lambda: directory, backends)


def _report_after(directory: Path | None) -> None:
    """The report of a run that has just ended. The script's exit code stands, whatever happens here."""
    why: tuple[str, ...] = ()
    if directory is not None:
        from ..advisors.assemble.build_report import build_report
        from ..profiler.run.run_reader import open_run
        from ..reports.text.text import render_text

        try:
            report = build_report(open_run(directory))
        except LoaderscopeError as error:
            click.echo(f"loaderscope: {error}", err=True)
            return
        if report.loaders:
            show(render_text, report, stream=sys.stderr)
            return
        why = report.missing
    for sentence in why or ("the script iterated over no DataLoader",):
        click.echo(f"loaderscope: nothing was recorded: {sentence}", err=True)
