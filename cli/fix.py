"""`loaderscope fix`: advice as a patch of the user's own source, tried before it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..profiler.base.errors import UsageError
from .script import asking, budget_option, yes_option

if TYPE_CHECKING:
    from ..fixing.patch import Patch
    from ..profiler.store.run.run import Run

DOES_NOT_HOLD = 1


@click.command("fix")
@click.argument("run", default="latest")
@click.option(
    "--advice",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help="Recommendation N, as `report --advice` counts; by default the plan's first step.",
)
@click.option("--write", is_flag=True, help="Write the change to the files.")
@click.option("--no-check", is_flag=True, help="Do not try it first.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The project: nothing outside of it is read or written.  [default: git's, or this folder]",
)
@budget_option
@yes_option
def fix_verb(
    run: str,
    number: int | None,
    write: bool,
    no_check: bool,
    root: Path | None,
    budget: float,
    yes: bool,
) -> int:
    """Show advice as a diff of your own source, tried before it is shown.

    The recorded command runs with and without the change, in turns, in temporary copies of the
    project. The diff goes to standard output, for `patch -p1` in the project's folder. The exit
    code is 0 for a patch, 1 for one that does not hold when it is tried, 2 where there is none.

    \b
    Examples:
      loaderscope fix
      loaderscope fix | patch -p1
      loaderscope fix --advice 2 --write
      loaderscope fix 20250131-0915 --no-check
    """
    from ..advisors.assemble.build_report import build_report
    from ..advisors.assemble.job import open_job
    from ..experiment.git import project_folder
    from ..fixing.patch import chosen, make_patch, open_project
    from ..fixing.write import write_changes

    recorded = open_job(run)
    folder = root.resolve() if root is not None else project_folder(Path.cwd())
    loader, advice = chosen(build_report(recorded), number)
    try:
        patch = make_patch(recorded, open_project(recorded, folder), loader, advice)
    except UsageError as error:
        raise UsageError(f"no patch for “{advice.title}”: {error}") from error
    said, holds = ("not tried", True)
    if not no_check:
        said, holds = _tried(recorded, patch, folder, budget, yes)
    click.echo(f"{patch.title} (made at {patch.place})\n{said}", err=True)
    if not holds:
        click.echo("The patch is not shown: it does not hold.", err=True)
        return DOES_NOT_HOLD
    click.echo(patch.diff.encode("utf-8", "surrogateescape"), nl=False)
    if write:
        write_changes(folder, patch.changes)
        files = ", ".join(each.path for each in patch.changes)
        click.echo(f"written: {files}", err=True)
    return 0


def _tried(run: Run, patch: Patch, root: Path, budget: float, yes: bool) -> tuple[str, bool]:
    """(what came of the trial, whether the patch holds). Raises UsageError where there could be
    none."""
    from ..experiment.change import Options
    from ..experiment.words import tried_lines
    from ..fixing.trial import holds, try_patch

    with asking(root, yes) as how:
        found = try_patch(run, patch, root, options=Options(budget_s=budget), **how)
    if found.error is not None:
        raise UsageError(f"{found.error}; --no-check shows the patch without trying it")
    return "tried: " + "\n".join(tried_lines(found)), holds(patch, found)
