"""`loaderscope demo`: a small real training, profiled twice."""

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
def demo_verb() -> int:
    """Train a small model on real PNG files, once with a badly configured loader and once with a
    good one.

    It takes half a minute. The report of the first loop is printed, and how much faster the second
    was.

    \b
    Example:
      loaderscope demo
    """
    from ..demo import run_demo

    bad, good = run_demo(lambda line: click.echo(line, err=True))
    from ..reports.document.listings import speedup
    from ..reports.text.text import render_brief

    deliver("\nA badly configured loader\n")
    show(partial(render_brief, most=MOST_LINES), bad)
    deliver("\nThe same pictures, with workers that stay\n")
    show(speedup(bad, good))
    deliver(NEXT)
    return 0
