"""The `loaderscope` command. Each verb is a short function that calls one floor below.

Exit codes: 0 done; 1 the user's script failed (its own code is passed on); 2 wrong arguments, or no such run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from . import __version__
from .profiler.errors import LoaderscopeError, UsageError

if TYPE_CHECKING:
    from .advisors.model import Report

FAILED, WRONG = 1, 2
INTERRUPTED = 130  # as shells say it
LIST_LIMIT = 20
# Files are read by people too; a terminal's width says nothing about them.
FILE_WIDTH = 100


class _ReaderGone(Exception):
    """Whoever read our output (head, less) has seen enough. (click would turn a BrokenPipeError into exit code 1.)"""


class _Commands(click.Group):
    """Shows the verbs in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["run", "report", "list", "demo", "doctor"]


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


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="loaderscope")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Where every batch's time goes in a PyTorch training loop, and why.

    \b
    Start here:
      loaderscope demo               see it at work on a small real training
      loaderscope run train.py       record your own script, unchanged
      loaderscope report             look at the last run again
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command("run", cls=_ScriptCommand, options_metavar="[--quiet] [--runs DIR]")
@click.option("-q", "--quiet", is_flag=True, help="Print no report after the script has ended.")
@click.option("--runs", type=click.Path(path_type=Path, file_okay=False), help="Folder to record into.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def run_verb(quiet: bool, runs: Path | None, command: tuple[str, ...]) -> int:
    """Run a script and record every DataLoader it uses.

    The script runs as `python SCRIPT ARGS` would run it: its arguments, output and exit code are its own. Child Python
    processes (torchrun's ranks) are recorded too. The report goes to standard error.

    \b
    Examples:
      loaderscope run train.py --lr 0.1
      loaderscope run -m package.train --epochs 2
      loaderscope run torchrun --nproc-per-node 2 train.py
    """
    if not command:
        raise UsageError("which script? For example: loaderscope run train.py --lr 0.1")
    from .profiler.launch import run_command

    code, directory = run_command(list(command), runs)
    if not quiet:
        _report_after(directory)
    return code if code >= 0 else 128 - code  # ended by a signal: as shells say it


def _report_after(directory: Path | None) -> None:
    """The report of a run that has just ended. The script's exit code stands, whatever happens here."""
    if directory is None:
        click.echo("loaderscope: nothing was recorded: the script iterated over no DataLoader", err=True)
        return
    from .advisors.report import build_report
    from .profiler.run import open_run

    try:
        report = build_report(open_run(directory))
    except LoaderscopeError as error:
        click.echo(f"loaderscope: {error}", err=True)
        return
    if report.loaders:
        _write(_text(report, sys.stderr), sys.stderr)
    else:
        click.echo("loaderscope: nothing was recorded: the script iterated over no DataLoader", err=True)


@cli.command("report")
@click.argument("run", default="latest")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to FILE.", metavar="FILE")
def report_verb(run: str, format_: str, output: Path | None) -> int:
    """Show where the time of a recorded run went.

    RUN is "latest" (the default), an id as `loaderscope list` shows it, the beginning of one, or a path. A run that is
    still going on, or that crashed, can be looked at just the same.

    \b
    Examples:
      loaderscope report
      loaderscope report 20250131-0915 --format json -o report.json
    """
    from .advisors.report import build_report
    from .profiler.run import open_run

    report = build_report(open_run(run))
    if format_ == "json":
        from .reports.json import render_json

        text = render_json(report)
    elif output is None:
        text = _text(report, sys.stdout)
    else:
        from .reports.text import render_text

        text = render_text(report, FILE_WIDTH)
    if output is None:
        _write(text, sys.stdout)
        return 0
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from error
    return 0


@cli.command("list")
@click.option("-n", "--number", type=click.IntRange(min=1), default=LIST_LIMIT, show_default=True, help="Show so many.")
def list_verb(number: int) -> int:
    """List the recorded runs, newest first.

    \b
    Example:
      loaderscope list -n 5
    """
    from .profiler.rundir import runs_directory
    from .profiler.runs import list_runs
    from .reports.run_list import render_list

    where = runs_directory()
    entries = list_runs(where, number)
    if not entries:
        click.echo(f"No runs in {where} yet. Try: loaderscope run your_script.py")
        return 0
    _write(render_list(entries, _width(sys.stdout), _color(sys.stdout)), sys.stdout)
    return 0


@cli.command("demo", short_help="See it at work on a small real training.")
@click.option("--quick", is_flag=True, help="Fewer and smaller pictures: done in half a minute.")
def demo_verb(quick: bool) -> int:
    """Train a small model on real PNG files, once with a badly configured loader and once with a good one.

    The pictures are made once and kept in the platform's cache folder (LOADERSCOPE_CACHE overrides it). Both reports
    are printed, and how much faster the second loop was.

    \b
    Example:
      loaderscope demo --quick
    """
    from .demo import run_demo

    bad, good = run_demo(quick, lambda line: click.echo(line, err=True))
    from .reports.comparison import render_comparison

    for title, report in (("1. A badly configured loader", bad), ("2. A good one", good)):
        _write(f"\n{title}\n{_text(report, sys.stdout)}", sys.stdout)
    _write(render_comparison(bad, good), sys.stdout)
    return 0


@cli.command("doctor", short_help="Say what can be measured on this machine.")
def doctor_verb() -> int:
    """Say what can and cannot be measured on this machine, and how to enable the rest.

    \b
    Example:
      loaderscope doctor
    """
    from .profiler.doctor import checks
    from .reports.findings import render_findings

    _write(render_findings(checks(), _width(sys.stdout), _color(sys.stdout)), sys.stdout)
    return 0


def _text(report: Report, stream: TextIO) -> str:
    from .reports.text import render_text

    return render_text(report, _width(stream), _color(stream), _unicode(stream))


def _width(stream: TextIO) -> int:
    """COLUMNS if set, the terminal's width if there is one, else 80."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _color(stream: TextIO) -> bool:
    """https://no-color.org: set and not empty means none; FORCE_COLOR is its opposite; else only on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _unicode(stream: TextIO) -> bool:
    return "utf" in (stream.encoding or "").lower()


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError as error:
        # Python flushes again at exit and would complain: what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise _ReaderGone from error


def main(args: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code. Users' errors are one sentence on standard error."""
    try:
        result: Any = cli.main(args, prog_name="loaderscope", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except LoaderscopeError as error:
        return _fail(str(error))
    except click.ClickException as error:
        return _fail(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except _ReaderGone:
        return 0


def _fail(message: str) -> int:
    from .profiler.metadata import clean

    click.echo(f"loaderscope: {clean(message)}", err=True)
    return WRONG
