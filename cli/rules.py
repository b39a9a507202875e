"""`loaderscope rules`: what the advice rests on."""

import click

from ..profiler.base.errors import UsageError
from .output import show


@click.command("rules", short_help="Explain the rules behind the advice.")
@click.argument("name", required=False)
def rules_verb(name: str | None) -> int:
    """List the rules behind the advice, or explain one: what it looks for, why, what to change,
    when not to.

    \b
    Examples:
      loaderscope rules
      loaderscope rules num-workers
    """
    from ..advisors.rules import NAMES, all_rules, rule
    from ..reports.document.listings import one_rule, rule_list

    if name is None:
        show(rule_list(all_rules()))
    elif name in NAMES:
        show(one_rule(rule(name)))
    else:
        import difflib

        near = difflib.get_close_matches(name, NAMES)
        hint = f"did you mean {' or '.join(near)}?" if near else "`loaderscope rules` lists them"
        raise UsageError(f"there is no rule {name}: {hint}")
    return 0
