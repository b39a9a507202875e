"""The `loaderscope` command. Each verb is a short function that calls one floor below.

Exit codes: 0 done; 1 the user's script failed (its own code is passed on), or `compare --fail-below` found a run too
slow; 2 wrong arguments, or no such run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from . import __version__
from .profiler.base.errors import LoaderscopeError, UsageError

if TYPE_CHECKING:
    from .advisors.case.probe_result import ProbeResult
    from .advisors.schema.report_model import Report
    from .profiler.run.run import Run

FAILED, WRONG = 1, 2
INTERRUPTED = 130  # as shells say it
LIST_LIMIT = 20


class _ReaderGone(Exception):
    """Whoever read our output (head, less) has seen enough. (click would turn a BrokenPipeError into exit code 1.)"""


class _Commands(click.Group):
    """Shows the verbs in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["run", "top", "report", "stacks", "probe-storage", "compare", "list", "rules", "demo", "doctor"]


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


@cli.command("run", cls=_ScriptCommand, options_metavar="[--live] [--quiet] [--runs DIR]")
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
        _need_terminal("run --live", "without --live the script runs just the same")
        from .tui.live import run_live

        code, directory = run_live(list(command), runs)
    else:
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
    from .advisors.assemble.build_report import build_report
    from .profiler.run.run_reader import open_run

    try:
        report = build_report(open_run(directory))
    except LoaderscopeError as error:
        click.echo(f"loaderscope: {error}", err=True)
        return
    if report.loaders:
        _write(_text(report, sys.stderr), sys.stderr)
        return
    for sentence in report.missing or ("the script iterated over no DataLoader",):
        click.echo(f"loaderscope: nothing was recorded: {sentence}", err=True)


@cli.command("top", short_help="Watch a run live, or look at one again, in the terminal.")
@click.argument("run", required=False)
def top_verb(run: str | None) -> int:
    """Show a run in the terminal: live while it goes on, with a time line to look back.

    RUN is an id as `loaderscope list` shows it, the beginning of one, "latest", or a path. Without it, the newest run
    that is live, else the newest. Nothing is asked of the training process: only its run directory is read.

    \b
    Examples:
      loaderscope top
      loaderscope top 20250131-0915
    """
    path = _live_or_named(run)
    from .profiler.run.run_reader import read_run_json

    read_run_json(path)  # what is no run directory is said before the screen is taken
    _need_terminal("top", "`loaderscope report` writes to a file or a pipe")
    from .tui.app import Dashboard

    Dashboard(path).run()
    return 0


def _live_or_named(run: str | None) -> Path:
    """The run of that name; without one, the newest that is live, else the newest. Raises RunNotFound."""
    from .profiler.run.run_finder import find_run

    if run is not None:
        return find_run(run)
    from .profiler.run.follow import newest_run
    from .profiler.session.rundir import runs_directory

    return newest_run(runs_directory()) or find_run("latest")


def _need_terminal(verb: str, instead: str) -> None:
    """Raises UsageError where there is no screen to draw on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise UsageError(f"`{verb}` needs a terminal that can draw; {instead}")


@cli.command("report")
@click.argument("run", default="latest")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "md", "html", "perfetto", "speedscope", "parquet"]),
    default="text",
    show_default=True,
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write to FILE (parquet: a folder).", metavar="FILE"
)
@click.option(
    "--probe",
    metavar="MODULE:NAME",
    help="A function of yours that returns the DataLoader: faster ways to fetch are tried on it, compared and timed.",
)
def report_verb(run: str, format_: str, output: Path | None, probe: str | None) -> int:
    """Show where the time of a recorded run went, and what to change.

    RUN is "latest" (the default), an id as `loaderscope list` shows it, the beginning of one, or a path. A run that is
    still going on, or that crashed, can be looked at just the same.

    \b
    Examples:
      loaderscope report
      loaderscope report --format html -o report.html
      loaderscope report --probe train:make_loader     (tries the advice)
      loaderscope report 20250131-0915 --format md | gh issue comment 7 -F -
      loaderscope report --format perfetto -o trace.json    (for ui.perfetto.dev)
      loaderscope report --format speedscope -o s.json      (for speedscope.app)
      loaderscope report --format parquet -o tables         (for pandas, polars)
    """
    from .reports.formats import FILE_ONLY, render_report

    if output is None and format_ in FILE_ONLY and (format_ == "parquet" or sys.stdout.isatty()):
        raise UsageError(f"{format_} is not for a terminal: say where it goes, such as -o {FILE_ONLY[format_]}")
    with _steps("reading the run", "looking for causes", "drawing") as step:
        from .advisors.assemble.build_report import build_report
        from .profiler.run.run_reader import open_run

        recorded = open_run(run)
        step()
        report = build_report(recorded, probes=_probed(recorded, probe) if probe is not None else None)
        step()
        if format_ == "text" and output is None:
            content: str | dict[str, bytes] = _text(report, sys.stdout)
        else:
            content = render_report(format_, report, recorded)
    _deliver(content, output)
    return 0


def _probed(run: Run, target: str) -> dict[tuple[str, int], ProbeResult]:
    """What was tried on the loader that `target` stands for. Raises UsageError."""
    from .advisors.assemble.probe import probe_loader
    from .advisors.assemble.target import load_target, place_of

    loader = load_target(target)
    return {place_of(run, loader): probe_loader(loader)}


@cli.command("stacks", short_help="Say which functions the time goes to: now, or as recorded.")
@click.argument("run", required=False)
@click.option("--native", is_flag=True, help="Compiled functions too: the processes stand still for moments.")
@click.option("--seconds", type=click.FloatRange(1, 30), metavar="S", help="Take stacks for so long.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write a speedscope file instead.", metavar="FILE"
)
def stacks_verb(run: str | None, native: bool, seconds: float | None, output: Path | None) -> int:
    """Show the hottest functions of each stage, and which lines of yours led there.

    Of a run that is live, stacks are taken now, by the system sampler beside it. Of one that has ended, what was
    recorded is shown. RUN is as for `loaderscope top`.

    \b
    Examples:
      loaderscope stacks
      loaderscope stacks --seconds 5 -o stacks.json    (for speedscope.app)
      loaderscope stacks 20250131-0915
    """
    path = _live_or_named(run)
    from .advisors.assemble.build_report import build_report
    from .profiler.run.run_reader import open_run
    from .reports.text.stacks_text import render_stacks, with_burst_alone

    recorded = open_run(path)
    if recorded.state == "live":
        from .profiler.run.take_stacks import take_stacks

        with _steps("taking stacks"):
            burst = take_stacks(path, native, seconds)
        recorded = with_burst_alone(open_run(path), burst)
    elif native or seconds is not None:
        raise UsageError(f"the run {recorded.id} is {recorded.state}: stacks can be taken of a live run only")
    report = build_report(recorded, advice=False)
    if output is None:
        text = render_stacks(report, recorded, _width(sys.stdout), _color(sys.stdout), _unicode(sys.stdout))
        _write(text, sys.stdout)
        return 0
    from .reports.export.speedscope import render_speedscope

    _deliver(render_speedscope(report, recorded), output)
    return 0


@cli.command("probe-storage", short_help="Try other layouts of the data on a copy of a sample.")
@click.argument("source", metavar="[RUN|DIR]", default="latest")
@click.option("--bytes", "bytes_", metavar="SIZE", default="256MB", show_default=True, help="Copy so much, per layout.")
@click.option("--files", type=click.IntRange(min=1), default=2000, show_default=True, help="Copy so many files.")
@click.option("--seconds", type=click.FloatRange(min=1), default=60, show_default=True, help="Take so long in all.")
@click.option("--temp", type=click.Path(path_type=Path), metavar="DIR", help="Make the temporary folder in DIR.")
@click.option("--seed", type=int, default=0, help="Another seed takes another sample.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to FILE.", metavar="FILE")
def probe_storage_verb(
    source: str,
    bytes_: str,
    files: int,
    seconds: float,
    temp: Path | None,
    seed: int,
    format_: str,
    output: Path | None,
) -> int:
    """Time how fast samples come from files as they are, LMDB, tar, Arrow, HDF5 and decoded arrays.

    DIR is a folder of data; RUN, a run that was seen to read files. A sample of the files is copied into a temporary
    folder on the same file system, stored in each layout, read cold and warm, and removed again.

    \b
    Examples:
      loaderscope probe-storage data/train
      loaderscope probe-storage latest --seconds 120
    """
    from .advisors.storage_probe import probe_storage
    from .advisors.storage_probe.bounds import read_size

    limit = read_size(bytes_)
    with _steps("choosing files", "copying and converting", "timing") as step:
        found = probe_storage(
            source, max_bytes=limit, max_files=files, max_seconds=seconds, temp=temp, seed=seed, step=step
        )
    from .reports.formats import FILE_WIDTH
    from .reports.text.storage_probe_text import render_storage_probe, render_storage_probe_json

    if format_ == "json":
        _deliver(render_storage_probe_json(found), output)
    elif output is not None:
        _deliver(render_storage_probe(found, FILE_WIDTH), output)
    else:
        _write(render_storage_probe(found, _width(sys.stdout), _color(sys.stdout), _unicode(sys.stdout)), sys.stdout)
    return 0


@cli.command("compare", short_help="Say what differs between two runs, and how sure that is.")
@click.argument("before")
@click.argument("after", default="latest")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "md", "html"]), default="text", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to FILE.", metavar="FILE")
@click.option(
    "--fail-below",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="Exit with 1 if AFTER's throughput is really below FACTOR times BEFORE's.",
)
def compare_verb(before: str, after: str, format_: str, output: Path | None, fail_below: float | None) -> int:
    """Compare two recorded runs: throughput, stages, verdict and configuration, with the uncertainty of each.

    A difference that chance alone could make is called none. With --fail-below, a loader fails the comparison when its
    throughput is below that factor and the difference is real.

    \b
    Examples:
      loaderscope compare 20250131-0915 latest
      loaderscope compare main.run branch.run --fail-below 0.95
    """
    from .reports.formats import FILE_ONLY, render_comparison

    if output is None and format_ in FILE_ONLY and sys.stdout.isatty():
        raise UsageError(f"{format_} is not for a terminal: say where it goes, such as -o comparison.html")
    with _steps("reading the first run", "reading the second", "comparing") as step:
        from .advisors.assemble.build_report import build_report
        from .profiler.run.run_reader import open_run
        from .reports.compare.compare import compare, slowest_factor
        from .reports.compare.compare_formats import render_compare_text

        first = open_run(before)
        step()
        second = open_run(after)
        step()
        found = compare(build_report(first, advice=False), first, build_report(second, advice=False), second)
    if format_ == "text" and output is None:
        text = render_compare_text(found, _width(sys.stdout), _color(sys.stdout))
    else:
        text = render_comparison(format_, found)
    _deliver(text, output)
    if fail_below is None:
        return 0
    slowest = slowest_factor(found)
    if slowest is None:
        raise UsageError("no throughput could be compared, so --fail-below cannot be judged: record longer runs")
    return FAILED if slowest[1] < fail_below else 0


@cli.command("list")
@click.option("-n", "--number", type=click.IntRange(min=1), default=LIST_LIMIT, show_default=True, help="Show so many.")
def list_verb(number: int) -> int:
    """List the recorded runs, newest first.

    \b
    Example:
      loaderscope list -n 5
    """
    from .profiler.run.run_list import list_runs
    from .profiler.session.rundir import runs_directory
    from .reports.text.run_list import render_list

    where = runs_directory()
    entries = list_runs(where, number)
    if not entries:
        click.echo(f"No runs in {where} yet. Try: loaderscope run your_script.py")
        return 0
    _write(render_list(entries, _width(sys.stdout), _color(sys.stdout)), sys.stdout)
    return 0


@cli.command("rules", short_help="Explain the rules behind the advice.")
@click.argument("name", required=False)
def rules_verb(name: str | None) -> int:
    """List the rules behind the advice, or explain one: what it looks for, why, what to change, when not to.

    \b
    Examples:
      loaderscope rules
      loaderscope rules num-workers
    """
    from .advisors.rules import NAMES, all_rules, rule
    from .reports.text.rule_list import render_rule, render_rules

    if name is None:
        _write(render_rules(all_rules(), _width(sys.stdout), _color(sys.stdout)), sys.stdout)
    elif name in NAMES:
        _write(render_rule(rule(name), _color(sys.stdout)), sys.stdout)
    else:
        import difflib

        near = difflib.get_close_matches(name, NAMES, n=3) or [each for each in NAMES if name in each][:3]
        hint = f"did you mean {' or '.join(near)}?" if near else "`loaderscope rules` lists them"
        raise UsageError(f"there is no rule {name}: {hint}")
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

    bad, good = run_demo(quick, lambda line: click.echo(line, err=True), track=_tracked)
    from .reports.compare.comparison import render_comparison

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
    from .reports.text.findings import render_findings

    _write(render_findings(checks(), _width(sys.stdout), _color(sys.stdout)), sys.stdout)
    return 0


def _tracked(numbers: Iterable[int]) -> Iterable[int]:
    """The same, with a progress bar on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        return numbers
    from rich.console import Console
    from rich.progress import track

    return track(list(numbers), "making pictures", console=Console(stderr=True), transient=True)


@contextmanager
def _steps(*names: str) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error if that is a terminal, for runs that take long to read; else nothing.

    Each call of what it yields ends a step.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    left = iter(names[1:])
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(names[0], total=len(names))
        yield lambda: progress.update(task, advance=1, description=next(left, names[-1]))


def _deliver(content: str | dict[str, bytes], output: Path | None) -> None:
    """Into the file or folder, or to standard output; HTML says it is UTF-8, so that is what a pipe gets."""
    if output is not None:
        from .reports.formats import write_content

        write_content(content, output)
        return
    assert isinstance(content, str)
    if content.startswith("<!DOCTYPE html>") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    _write(content, sys.stdout)


def _text(report: Report, stream: TextIO) -> str:
    from .reports.text.text import render_text

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
    from .profiler.base.metadata import clean

    click.echo(f"loaderscope: {clean(message)}", err=True)
    return WRONG
