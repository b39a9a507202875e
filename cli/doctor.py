"""`loaderscope doctor`: what can be measured on this machine."""

import click

from .output import show


@click.command("doctor", short_help="Say what can be measured on this machine.")
def doctor_verb() -> int:
    """Say what can and cannot be measured on this machine, and how to enable the rest.

    \b
    Example:
      loaderscope doctor
    """
    from ..profiler.doctor import checks
    from ..reports.document.listings import findings

    show(findings(checks()))
    return 0
