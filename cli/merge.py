"""`loaderscope merge`: the runs of a job's nodes as one."""

from pathlib import Path

import click

from .output import PATH


@click.command("merge")
@click.argument("runs", nargs=-1, required=True, metavar="DIR...")
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    help="The new folder.",
    metavar="OUT",
)
def merge_verb(runs: tuple[str, ...], output: Path) -> int:
    """Merge the runs that the nodes of a job recorded separately into one.

    Nodes that share the folder they record into (--runs, LOADERSCOPE_DIR) need no merging: SLURM's
    steps, torchrun's
    --rdzv-id and MPI's job ids bring them together there. DIR is a finished run's folder or its id.

    \b
    Example:
      loaderscope merge node0.run node1.run -o job.run
    """
    from ..profiler.store.run.merge_runs import merge_runs

    made = merge_runs(runs, output)
    click.echo(f"loaderscope report {made if made.is_absolute() else f'./{made}'}")
    return 0
