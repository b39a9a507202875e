"""`loaderscope compare`: what differs between two runs."""

from pathlib import Path

import click

from ..profiler.base.errors import UsageError
from .output import format_option, need_file, output_option, show, working

FAILED = 1


@click.command("compare", short_help="Say what differs between two runs, and how sure that is.")
@click.argument("before")
@click.argument("after", default="latest")
@format_option("json", "md", "html")
@output_option()
@click.option(
    "--fail-below",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="Exit with 1 if AFTER's throughput is below FACTOR times BEFORE's, for real.",
)
def compare_verb(
    before: str, after: str, format_: str, output: Path | None, fail_below: float | None
) -> int:
    """Compare two recorded runs: throughput with its uncertainty, stages, verdict and
    configuration.

    A difference that may be chance is not called a difference. With --fail-below, the comparison
    fails if a loader's throughput is below that factor and the difference is real.

    \b
    Examples:
      loaderscope compare 20250131-0915 latest
      loaderscope compare main.run branch.run --fail-below 0.95
    """
    need_file(format_, output, "comparison.html")
    with working("reading the runs"):
        from ..advisors.assemble.build_report import build_report
        from ..profiler.store.run.run_reader import open_run
        from ..reports.compare.compare import compare, slowest_factor
        from ..reports.formats import render_comparison

        first = open_run(before)
        second = open_run(after)
        found = compare(build_report(first), first, build_report(second), second)
    show(render_comparison, format_, found, output=output)
    if fail_below is None:
        return 0
    slowest = slowest_factor(found)
    if slowest is None:
        raise UsageError(
            "no throughput could be compared, so --fail-below cannot be judged: record longer runs"
        )
    return FAILED if slowest[1] < fail_below else 0
