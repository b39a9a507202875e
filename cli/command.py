"""The `loaderscope` command: its verbs, and what becomes of errors.

Exit codes: 0 done; 1 the user's script failed (its own code is passed on), or `compare
--fail-below` found a run too slow; 2 wrong arguments, or no such run.
"""

from collections.abc import Sequence

import click

from .. import __version__
from ..profiler.base.errors import LoaderscopeError
from .compare import compare_verb
from .demo import demo_verb
from .doctor import doctor_verb
from .fix import fix_verb
from .list import list_verb
from .merge import merge_verb
from .output import ReaderGone
from .probe_storage import probe_storage_verb
from .report import report_verb
from .rules import rules_verb
from .run import run_verb
from .size import size_verb
from .stacks import stacks_verb
from .top import top_verb
from .try_ import try_verb
from .tune import tune_verb

WRONG = 2
INTERRUPTED = 130  # as shells say it
VERBS = (
    run_verb,
    tune_verb,
    top_verb,
    report_verb,
    try_verb,
    fix_verb,
    stacks_verb,
    probe_storage_verb,
    compare_verb,
    size_verb,
    list_verb,
    merge_verb,
    rules_verb,
    demo_verb,
    doctor_verb,
)


class _Commands(click.Group):
    """Shows the verbs in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Commands,
    commands=VERBS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="loaderscope")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Where every batch's time goes in a PyTorch training loop, and why.

    \b
    Start here:
      loaderscope demo               see it at work on a small real training
      loaderscope run train.py       record your own script, unchanged
      loaderscope report             look at the last run again

    `loaderscope try` measures a change of your code. For coding assistants:
    https://loaderscope.readthedocs.io/en/latest/assistants/
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code. Users' errors are one sentence on standard error."""
    try:
        return cli.main(args, prog_name="loaderscope", standalone_mode=False) or 0
    except LoaderscopeError as error:
        return _fail(str(error))
    except click.ClickException as error:
        return _fail(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except ReaderGone:
        return 0


def _fail(message: str) -> int:
    from ..profiler.base.metadata import clean

    click.echo(f"loaderscope: {clean(message)}", err=True)
    return WRONG
