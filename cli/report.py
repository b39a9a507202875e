"""`loaderscope report`: a run's report, in any format."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..profiler.base.errors import UsageError
from .output import deliver, fitted, format_option, need_file, output_option, working

if TYPE_CHECKING:
    from ..advisors.schema.report_model import Report
    from ..profiler.store.run.run import Run
    from ..reports.formats import Content

_PATCHED = ("html", "json")  # these show advice as a patch too
_WHOLE = ("perfetto", "parquet")


@click.command("report")
@click.argument("run", default="latest")
@format_option("json", "md", "html", "perfetto", "parquet")
@output_option("Write to FILE (parquet: a folder).")
@click.option("--full", is_flag=True, help="Text: the full report.")
@click.option(
    "--advice",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help="Text: recommendation N in full.",
)
def report_verb(
    run: str,
    format_: str,
    output: Path | None,
    full: bool,
    number: int | None,
) -> int:
    """Show where the time of a recorded run went, and what to change.

    RUN is "latest" (the default), an id as `loaderscope list` shows it, the beginning of one, or a
    path. Live and crashed runs can be shown too.

    \b
    Examples:
      loaderscope report
      loaderscope report --full
      loaderscope report --advice 1
      loaderscope report --format html -o report.html
      loaderscope report --format perfetto -o trace.json    (for ui.perfetto.dev)
      loaderscope report --format parquet -o tables         (for pandas, polars)
    """
    from ..reports.formats import FILE_ONLY, render_report

    if (full or number is not None) and format_ != "text":
        raise UsageError(f"--full and --advice are for text: {format_} has all of it")
    need_file(format_, output, FILE_ONLY.get(format_, ""))
    with working("reading the run"):
        from ..advisors.assemble.build_report import build_report
        from ..advisors.assemble.job import open_job
        from ..profiler.store.run.run_reader import open_run

        # Traces and tables are of every batch of every rank; reports speak of few.
        recorded = (open_run if format_ in _WHOLE else open_job)(run)
        report = build_report(recorded)
        if format_ in _PATCHED:
            report = _with_diffs(report, recorded)
        if number is not None:
            from ..reports.text.text import render_advice

            content: Content = fitted(render_advice, report, number, output=output)
        else:
            render = partial(render_report, full=full)
            content = fitted(render, format_, report, recorded, output=output)
    deliver(content, output)
    return 0


def _with_diffs(report: Report, recorded: Run) -> Report:
    """With advice as patches of the project that the command is called in."""
    from ..experiment.git import project_folder
    from ..fixing.patch import with_diffs

    return with_diffs(report, recorded, project_folder(Path.cwd()))
