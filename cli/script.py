"""What verbs that run a script have in common: its arguments are its own, and a report comes after
it."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

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
