"""`loaderscope probe-storage`: other layouts of the data, tried on a sample."""

from pathlib import Path

import click

from .output import PATH, deliver, format_option, output_option, show, working


@click.command("probe-storage", short_help="Try other layouts of the data on a copy of a sample.")
@click.argument("source", metavar="[RUN|DIR]", default="latest")
@click.option(
    "--bytes",
    "bytes_",
    metavar="SIZE",
    default="256MB",
    show_default=True,
    help="Max bytes per layout.",
)
@click.option(
    "--files",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Max files.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    help="Max seconds in all.",
)
@click.option(
    "--temp",
    type=PATH,
    metavar="DIR",
    help="Folder for the temporary copies.",
)
@click.option("--seed", type=int, default=0, help="Seed of the sample.")
@format_option("json")
@output_option()
def probe_storage_verb(
    source: str,
    bytes_: str,
    files: int,
    seconds: float,
    temp: Path | None,
    seed: int,
    format_: str,
    output: Path | None,
) -> int:
    """Time how fast samples come from files as they are, LMDB, tar, Arrow and decoded arrays.

    DIR is a folder of data; RUN, a run that was seen to read files. A sample of the files is copied
    into a temporary folder on the same file system, stored in each layout, read cold and warm, and
    removed again.

    \b
    Examples:
      loaderscope probe-storage data/train
      loaderscope probe-storage latest --seconds 120
    """
    from ..advisors.storage_probe.run_probe import Bounds, probe_storage, read_size

    bounds = Bounds(read_size(bytes_), files, seconds)
    with working("copying, converting and timing files"):
        found = probe_storage(source, bounds, temp=temp, seed=seed)
    from ..reports.document.machine import probe_sections

    if format_ == "json":
        deliver(found.to_json() + "\n", output)
    else:
        show(probe_sections(found), output=output)
    return 0
