"""`loaderscope list`: the recorded runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import deliver, format_option, need_file, output_option, runs_option, show

if TYPE_CHECKING:
    from ..profiler.store.run.run_list import RunEntry
    from ..reports.document.listings import Leading
    from ..reports.export.fleet import FleetRow

LIST_LIMIT = 20


@click.command("list")
@click.option(
    "-n", "--number", type=click.IntRange(min=1), help=f"Max runs (as text: {LIST_LIMIT})."
)
@runs_option("Folder of the runs.", is_folder=True)
@format_option("json", "csv", "parquet")
@output_option()
def list_verb(number: int | None, runs: Path | None, format_: str, output: Path | None) -> int:
    """List the recorded runs, newest first, each with the loader that costs it most: the verdict,
    and what the first advice would gain.

    Any format but text is a table for DuckDB, Polars or a spreadsheet: a row per loader and run
    with its verdict, the cost of waiting, and the first recommendation with its predicted gain.

    \b
    Examples:
      loaderscope list -n 5
      loaderscope list --format parquet -o fleet.parquet
    """
    from ..profiler.store.run.run_list import list_runs
    from ..profiler.store.rundir import runs_directory
    from ..reports.document.listings import run_list

    need_file(format_, output, "fleet.parquet")
    where = runs_directory() if runs is None else runs
    entries = list_runs(where, number or (LIST_LIMIT if format_ == "text" else None))
    if format_ != "text":
        from ..reports.export.fleet import FleetRow
        from ..reports.export.tables import render_table

        deliver(render_table(format_, FleetRow, _rows(entries)), output)
    elif entries:
        show(run_list(entries, _leading(entries), str(where)), output=output)
    else:
        click.echo(f"No runs in {where} yet. Try: loaderscope run your_script.py")
    return 0


def _leading(entries: Iterable[RunEntry]) -> dict[str, Leading]:
    """The loader of each run that loading cost most, by the run's id."""
    from ..reports.document.listings import Leading

    rows = sorted(_rows(entries), key=lambda row: row.lost_loop_hours or 0.0, reverse=True)
    return {
        row.run: Leading(row.variable or row.loader or "", row.verdict or "", row.predicted_mid)
        for row in rows[::-1]  # of a run's loaders, the first is the last to be put in
    }


def _rows(entries: Iterable[RunEntry]) -> Iterator[FleetRow]:
    """One run after the other: of thousands, no more than one is in memory."""
    from ..advisors.assemble.build_report import build_report
    from ..advisors.assemble.job import open_job
    from ..profiler.base.errors import LoaderscopeError
    from ..reports.export.fleet import fleet_rows

    for entry in entries:
        try:
            report = build_report(open_job(entry.path)) if entry.problem is None else entry.problem
        except LoaderscopeError as error:
            report = str(error)
        yield from fleet_rows(entry, report)
