"""`loaderscope stacks`: the hottest functions, of a live run or as recorded."""

import click

from ..profiler.base.errors import UsageError
from .output import live_or_named, show, working


@click.command("stacks", short_help="Say which functions the time goes to: now, or as recorded.")
@click.argument("run", required=False)
@click.option(
    "--seconds", type=click.FloatRange(1, 30), metavar="S", help="Seconds to take stacks for."
)
def stacks_verb(run: str | None, seconds: float | None) -> int:
    """Show the hottest functions of each stage, and which lines of yours led there.

    Stacks of a live run are taken now, by its system sampler. Of a finished run, the recorded
    stacks are shown. RUN is as for `loaderscope top`.

    \b
    Examples:
      loaderscope stacks
      loaderscope stacks --seconds 5
      loaderscope stacks 20250131-0915
    """
    path = live_or_named(run)
    from ..advisors.assemble.build_report import build_report
    from ..profiler.store.run.run_reader import open_run
    from ..reports.document.inside import stack_sections

    recorded = open_run(path)
    if recorded.state == "live":
        from ..profiler.store.run.take_stacks import take_stacks, with_burst_alone

        with working("taking stacks"):
            burst = take_stacks(path, seconds)
        recorded = with_burst_alone(open_run(path), burst)
    elif seconds is not None:
        raise UsageError(
            f"the run {recorded.id} is {recorded.state}: stacks can be taken of a live run only"
        )
    show(stack_sections(build_report(recorded, advice=False), recorded))
    return 0
