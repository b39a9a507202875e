"""What verbs that run a script have in common: its arguments are its own, trials ask before it
runs, and a report comes after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..profiler.base.errors import LoaderscopeError, UsageError
from .output import show

if TYPE_CHECKING:
    from ..profiler.launch import Ended


MODULE_OR_CODE = ("-m", "-c")  # Python's own options that stand for a script


class ScriptCommand(click.Command):
    """Leaves everything from the script's name (or -m, or -c) on to the script."""

    allow_interspersed_args = False
    ignore_unknown_options = True  # -m and -c

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        left = self.parse_own(ctx, args)
        command = ctx.params["command"]
        if not command:
            raise UsageError(f"which script? For example: loaderscope {self.name} train.py")
        if command[0].startswith("-") and command[0] not in MODULE_OR_CODE:
            raise click.NoSuchOption(command[0], ctx=ctx)
        return left

    def parse_own(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Its own options; what is left is the script's `command`."""
        return super().parse_args(ctx, args)


def report_after(ended: Ended, tuned: bool = True) -> None:
    """The report of a run that has just ended, which leads with what tuning found unless that was
    printed before. The script's exit code stands, whatever happens here."""
    if not ended.could:
        return
    why: tuple[str, ...] = ()
    if ended.directory is not None:
        from ..advisors.assemble.build_report import build_report
        from ..advisors.assemble.job import open_job
        from ..profiler.base.host import host_name
        from ..reports.text.text import AFTER_RUN, render_brief

        try:
            run = open_job(ended.directory)
            if (run.pid, run.host) != (os.getpid(), host_name()):
                click.echo(
                    f"loaderscope: recorded into {run.id} with the rest of this job: loaderscope "
                    "report",
                    err=True,
                )
                return
            report = build_report(run)
        except LoaderscopeError as error:
            click.echo(f"loaderscope: {error}", err=True)
            return
        if report.loaders:
            show(partial(render_brief, most=AFTER_RUN, tuned=tuned), report, stream=sys.stderr)
            return
        why = report.missing
    for sentence in why or ("the script iterated over no DataLoader",):
        click.echo(f"loaderscope: nothing was recorded: {sentence}", err=True)


def exit_code(code: int) -> int:
    """Ended by a signal: as shells say it."""
    return code if code >= 0 else 128 - code


MOST_LINKED = 5  # that are named
budget_option = click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Max seconds of turns; with starts of the script three times as long.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask before the script runs.")


@contextmanager
def asking(root: Path, yes: bool) -> Iterator[dict[str, Any]]:
    """`ask` and `say` of a trial: what is being done is shown on standard error, if that is a
    terminal."""

    def ask(linked: Sequence[str]) -> None:
        if not yes:
            _ask_to_run(root, linked)

    if not sys.stderr.isatty():
        yield {"ask": ask}
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:

        def ask_in_between(linked: Sequence[str]) -> None:
            status.stop()
            ask(linked)
            status.start()

        yield {"ask": ask_in_between, "say": status.update}


def _ask_to_run(root: Path, linked: Sequence[str]) -> None:
    """Say what copies do not hold back. Raises UsageError where that is not wanted."""
    shared = ", ".join(linked[:MOST_LINKED]) + (" …" if len(linked) > MOST_LINKED else "")
    through = f", or through links to what is large in {root} ({shared})," if linked else ""
    said = (
        "the script runs several times in copies of its project, with experiment trackers off and "
        f"LOADERSCOPE_TRIAL=1; what it writes outside of them, over the network{through} is real"
    )
    if not sys.stdin.isatty():
        raise UsageError(f"{said}: say --yes to run it")
    click.echo(f"loaderscope: {said}.", err=True)
    if not click.confirm("Run it?", err=True):
        raise UsageError("not tried")
