"""What verbs that try a change have in common: they ask before a script runs, and what a
budget is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ..profiler.base.errors import UsageError

MOST_LINKED = 5  # that are named
budget_option = click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Max seconds of turns; with starts of the script three times as long.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask before the script runs.")


def ask_to_run(root: Path, linked: Sequence[str], yes: bool) -> None:
    """Say what copies do not hold back. Raises UsageError where that is not wanted."""
    if yes:
        return
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
