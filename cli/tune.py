"""`loaderscope tune`: a script as it is, the settings of its loaders tried while it trains."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from ..profiler.base.errors import LoaderscopeError
from .output import deliver, runs_option
from .script import ScriptCommand, exit_code, report_after


@click.command(
    "tune",
    cls=ScriptCommand,
    options_metavar="[--budget S] [--dry] [--any-random] [--quiet] [--runs DIR]",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Max seconds of trials per loader.",
)
@click.option(
    "--dry", is_flag=True, help="Try nothing; list what would be tried, and why the rest would not."
)
@click.option(
    "--any-random",
    is_flag=True,
    help="Also tune random augmentation: other random numbers are drawn.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the result without a report.")
@runs_option()
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def tune_verb(
    budget: float,
    dry: bool,
    any_random: bool,
    quiet: bool,
    runs: Path | None,
    command: tuple[str, ...],
) -> int:
    """Run a script and try the settings of its DataLoaders while it trains.

    Other settings take turns with the script's own, some steps at a time. What is proven faster
    stays until the script ends. The script gets the same batches as without tuning: a loader whose
    batches depend on more than their indices is not tuned. At the end, the settings to write into
    the code and the report are printed to standard error. The exit code is the script's own.

    \b
    Examples:
      loaderscope tune train.py --lr 0.1
      loaderscope tune --budget 30 --dry train.py
    """
    from ..profiler.launch import BEGIN_VARIABLE, run_command
    from ..tuning.tune import VARIABLE, Options, tune_as_told

    options = json.dumps(asdict(Options(budget, dry, any_random)))
    begin = f"{tune_as_told.__module__}:{tune_as_told.__name__}"
    ended = run_command(list(command), runs, {VARIABLE: options, BEGIN_VARIABLE: begin})
    if ended.directory is not None:
        from ..profiler.store.run.run_reader import open_run
        from ..reports.words.tuned_words import tuned_text

        try:
            deliver(tuned_text(open_run(ended.directory)), stream=sys.stderr)
        except LoaderscopeError as error:
            click.echo(f"loaderscope: {error}", err=True)
    if ended.directory is None or not quiet:
        report_after(ended, tuned=False)
    return exit_code(ended.code)
