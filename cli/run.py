"""`loaderscope run`: a script as it is, recorded, and its report."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..profiler.base.errors import UsageError
from .output import need_terminal, runs_option
from .script import ScriptCommand, exit_code, report_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..integrations.scalar_backends import Backend
    from ..profiler.launch import Beside


_METRICS = "Export figures to prometheus:FILE.prom or tensorboard:FOLDER while it runs; repeatable."


@click.command(
    "run",
    cls=ScriptCommand,
    options_metavar="[--live] [--quiet] [--runs DIR] [--metrics KIND:PATH]",
)
@click.option(
    "--live",
    is_flag=True,
    help="Show the dashboard, with the script's output in a pane.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no report at the end.")
@runs_option()
@click.option("--metrics", multiple=True, metavar="KIND:PATH", help=_METRICS)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def run_verb(
    live: bool, quiet: bool, runs: Path | None, metrics: tuple[str, ...], command: tuple[str, ...]
) -> int:
    """Run a script and record every DataLoader it uses.

    The script runs as `python SCRIPT ARGS` would run it: its arguments, output and exit code are
    its own. Child Python processes (torchrun's ranks) are recorded too. The report goes to standard
    error.

    \b
    Examples:
      loaderscope run train.py --lr 0.1
      loaderscope run --live train.py
      loaderscope run -m package.train --epochs 2
      loaderscope run torchrun --nproc-per-node 2 train.py
    """
    beside = _exports(metrics)
    if live:
        need_terminal("run --live", "without --live the script runs just the same")
        from ..tui.live import run_live

        ended = run_live(list(command), runs, beside)
    else:
        from ..profiler.launch import run_command

        ended = run_command(list(command), runs, beside=beside)
    if not quiet:
        report_after(ended)
    return exit_code(ended.code)


def _exports(wanted: tuple[str, ...]) -> Beside:
    """Exports the run's figures while it lasts. Raises UsageError for an unknown place."""
    if not wanted:
        return nullcontext
    from ..integrations.scalars import Live, Prometheus, TensorBoard

    kinds: dict[str, Callable[[str], Backend]] = {
        "prometheus": Prometheus,
        "tensorboard": TensorBoard,
    }
    backends: list[Backend] = []
    for each in wanted:
        kind, _, path = each.partition(":")
        if kind not in kinds or not path:
            raise UsageError(
                f"--metrics {each} names no place: write prometheus:FILE.prom or tensorboard:FOLDER"
            )
        backends.append(kinds[kind](path))
    return lambda directory: Live(lambda: directory, backends)
