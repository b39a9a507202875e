"""`loaderscope demo`: a small real training, profiled twice."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial

import click

from .output import deliver, show

MOST_LINES = 30
NEXT = """
Next:
  loaderscope run train.py                             record a script of your own, unchanged
  loaderscope report --format html -o report.html      the last report in a browser
  loaderscope top                                      a run in the terminal, live or again
"""


@click.command("demo", short_help="See it at work on a small real training.")
@click.option("--quick", is_flag=True, help="Fewer and smaller pictures: done in half a minute.")
def demo_verb(quick: bool) -> int:
    """Train a small model on real PNG files, once with a badly configured loader and once with a
    good one.

    The pictures are made once, in the platform's cache folder or LOADERSCOPE_CACHE. The report of
    the first loop is printed, and how much faster the second was.

    \b
    Example:
      loaderscope demo --quick
    """
    from ..demo import run_demo

    bad, good = run_demo(quick, lambda line: click.echo(line, err=True), track=tracked)
    from ..reports.document.listings import speedup
    from ..reports.text.text import render_brief

    deliver("\nA badly configured loader\n")
    show(partial(render_brief, most=MOST_LINES), bad)
    deliver("\nThe same pictures, with workers that stay\n")
    show(speedup(bad, good))
    deliver(NEXT)
    return 0


def tracked(numbers: Iterable[int]) -> Iterable[int]:
    """The same, with a progress bar on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        return numbers
    from rich.console import Console
    from rich.progress import track

    return track(list(numbers), "making pictures", console=Console(stderr=True), transient=True)
