"""`loaderscope try`: a script with and without a change of its code, in turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..profiler.base.errors import UsageError
from .output import PATH, deliver, format_option
from .script import MODULE_OR_CODE, ScriptCommand, asking, budget_option, yes_option

if TYPE_CHECKING:
    from ..experiment.change import Change
    from ..experiment.result import TryResult

WORSE, NOT_TRIED = 1, 2


class TryCommand(ScriptCommand):
    """Takes its own options before the script, or between the script and `--`."""

    def parse_own(self, ctx: click.Context, args: list[str]) -> list[str]:
        found, _, given = self.make_parser(ctx).parse_args(list(args))
        command = list(found["command"]) if isinstance(found["command"], tuple) else []
        own = args[: len(args) - len(command)]
        at = 2 if command[:1] and command[0] in MODULE_OR_CODE else 1
        script, others = command[:at], command[at:]
        if "--" in own or any(each.name in _CHANGES for each in given):
            # All that follows the script is its own.
            rest = others[1:] if others[:1] == ["--"] else others
            return super().parse_own(ctx, [*own, *script, *rest])
        ctx.allow_interspersed_args = True
        left = super().parse_own(ctx, [*own, *others])
        ctx.params["command"] = (*script, *ctx.params["command"])
        return left


_CHANGES = ("patch", "against", "a", "b")


@click.command(
    "try",
    cls=TryCommand,
    options_metavar="--patch FILE | --against REV | --a DIR --b DIR  [OPTIONS]",
    short_help="Measure a change of your code: same batches? how much faster?",
)
@click.option("--patch", metavar="FILE", help="A unified diff of the project; - is standard input.")
@click.option("--against", metavar="REV", help="Compare the working tree with this commit.")
@click.option("--a", "a", type=PATH, metavar="DIR", help="The project as is.")
@click.option("--b", "b", type=PATH, metavar="DIR", help="And changed.")
@budget_option
@click.option(
    "--batches",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    help="Batches that are compared.",
)
@yes_option
@format_option("json")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [-- ARGS]...")
def try_verb(
    patch: str | None,
    against: str | None,
    a: Path | None,
    b: Path | None,
    budget: float,
    batches: int,
    yes: bool,
    format_: str,
    command: tuple[str, ...],
) -> int:
    """Run a script with and without a change of its code: same batches? how much faster?

    Both run in temporary copies of the project, in turns, until the range of the factor is narrow
    or the budget is spent. The project stays as it is. The exit code is 0 if the batches are the
    same and it is not slower, 1 if they differ or it is slower, 2 if it could not be tried.

    \b
    Examples:
      loaderscope try train.py --patch change.diff
      loaderscope try train.py --against HEAD -- --epochs 3
      loaderscope try --a old --b new train.py --epochs 3
    """
    from ..experiment.change import Options
    from ..experiment.result import TryResult
    from ..experiment.try_change import project_of, try_change

    here = Path.cwd()
    try:
        change = _change(patch, against, a, b, lambda: project_of(command, here))
        options = Options(budget, batches)
        with asking(change.root, yes) as how:
            found = try_change(command, change, here=here, options=options, **how)
    except UsageError as error:
        found = TryResult(error=str(error))
    return _tell(found, format_)


def _change(
    patch: str | None,
    against: str | None,
    a: Path | None,
    b: Path | None,
    project: Callable[[], Path],
) -> Change:
    from ..experiment.change import Change

    if (a is None) != (b is None):
        raise UsageError("two folders are compared: say both --a DIR and --b DIR")
    if sum(each is not None for each in (patch, against, a)) != 1:
        raise UsageError(
            "which change? Say one of --patch FILE, --against REV, and --a DIR --b DIR"
        )
    if a is not None and b is not None:
        return Change(a, other=b)
    return Change(project(), patch=None if patch is None else _read(patch), revision=against)


def _read(patch: str) -> str:
    try:
        with click.open_file(patch, "rb") as file:
            data: bytes = file.read()
        return data.decode(errors="surrogateescape")
    except OSError as error:
        raise UsageError(f"the patch {patch} cannot be read: {error.strerror}") from error


def _tell(found: TryResult, format_: str) -> int:
    """Print what was found; the exit code. Raises UsageError where it could not be tried."""
    if format_ == "json":
        click.echo(json.dumps(asdict(found), indent=2, allow_nan=False))
    elif found.error is not None:
        raise UsageError(found.error)
    else:
        from ..experiment.words import tried_lines

        deliver("\n".join([*tried_lines(found), ""]))
    if found.error is not None:
        return NOT_TRIED
    return 0 if found.holds else WORSE
