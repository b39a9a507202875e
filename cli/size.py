"""`loaderscope size`: what a machine must have for a loader to be no limit."""

from pathlib import Path

import click

from .output import deliver, format_option, output_option, show, working


@click.command("size", short_help="Say how many CPUs, how much disk and memory a GPU needs.")
@click.argument("run", default="latest")
@click.option(
    "--speed",
    "speeds",
    type=click.FloatRange(min=0, min_open=True),
    multiple=True,
    metavar="K",
    help="A GPU K times as fast as that of the run; repeatable. Default: 1, 2 and 4.",
)
@click.option(
    "--loader", metavar="NAME", help="Which loader, by its name (default: the costliest)."
)
@format_option("json")
@output_option()
def size_verb(
    run: str, speeds: tuple[float, ...], loader: str | None, format_: str, output: Path | None
) -> int:
    """Say what a machine needs for this loader to be no limit to training: CPUs and workers for a
    GPU as fast as that of the run, or K times as fast, disk bandwidth, and room in the page cache.

    RUN is as for `loaderscope report`. Nothing is tried: the figures come from the what-if model of
    the recorded loop, with the range that its error leaves.

    \b
    Examples:
      loaderscope size
      loaderscope size --speed 2.5
      loaderscope size 20250131-0915 --format json
    """
    with working("reading the run"):
        from ..advisors.assemble.size import size_of
        from ..profiler.store.run.run_reader import open_run

        recorded = open_run(run)
        found = size_of(recorded, loader, speeds or (1.0, 2.0, 4.0))
    if format_ == "json":
        deliver(found.to_json() + "\n", output)
        return 0
    from ..reports.document.machine import size_sections

    show(size_sections(found), output=output)
    return 0
